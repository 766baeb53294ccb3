import { CONNECTIONS_MAX } from "@tributary/contract";
import { BUILT_IN, parseOrigoUrls, parseSettings } from "./settings";

describe("settings: parsing what storage holds", () => {
  test.each([null, undefined, 5, "x", [], {}])("%j gives the defaults", (raw) =>
    expect(parseSettings(raw)).toEqual(BUILT_IN),
  );

  test("a valid value counts, an invalid value leaves the default", () => {
    const raw = {
      enabled: false,
      mode: "fastest",
      connections: 0,
      origoUrls: ["http://origo.example:7600/"],
      sendRecords: "yes",
      other: 1,
    };
    expect(parseSettings(raw)).toEqual({ ...BUILT_IN, enabled: false, origoUrls: ["http://origo.example:7600"] });
  });

  test.each([
    [1, 1],
    [CONNECTIONS_MAX, CONNECTIONS_MAX],
    [CONNECTIONS_MAX + 1, BUILT_IN.connections],
    [2.5, BUILT_IN.connections],
  ])("connections %d", (connections, expected) => {
    expect(parseSettings({ connections }).connections).toBe(expected);
  });

  test.each([
    ["http://127.0.0.1:7600", "http://127.0.0.1:7600"],
    [" https://origo.example/base// ", "https://origo.example/base"],
    ["ftp://origo.example", undefined],
    ["javascript:alert(1)", undefined],
    ["origo.example", undefined],
    ["https://a:b@origo.example", undefined],
    ["https://origo.example/?x", undefined],
    [5, undefined],
  ])("Origo address %j", (value, expected) => expect(parseOrigoUrls([value])).toEqual(expected && [expected]));

  test("one to eight Origo addresses are accepted if all are valid, without repeats", () => {
    expect(parseOrigoUrls(["http://a.example/", "http://b.example", "http://a.example"])).toEqual([
      "http://a.example",
      "http://b.example",
    ]);
    const many = (count: number): string[] => Array.from({ length: count }, (_, at) => `http://o${at}.example`);
    expect([
      parseOrigoUrls(many(8))?.length,
      parseOrigoUrls(many(9)),
      parseOrigoUrls([]),
      parseOrigoUrls(["http://a.example", "x"]),
      parseOrigoUrls("http://a.example"),
    ]).toEqual([8, undefined, undefined, undefined, undefined]);
  });
});
