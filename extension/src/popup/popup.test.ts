import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import type { LiveFigures } from "../shared/runtime";
import { BUILT_IN } from "../shared/settings";
import { DIRECT_MS } from "../transport/detours";
import { History } from "./chart";
import { Merge } from "./merge";
import { Rates, shownState, wastedShare, type Stream } from "./rates";
import {
  bytesText,
  liarsSentence,
  rateText,
  statusSentence,
  troubleSentence,
  uncheckedSentence,
  vouchedSentence,
} from "../shared/words";

type Messages = Record<string, { message: string }>;
const folder = path.join(__dirname, "../../static");
const messages = (language: string): Messages =>
  JSON.parse(readFileSync(path.join(folder, "_locales", language, "messages.json"), "utf8")) as Messages;
const english = messages("en");
const say = (key: string, ...substitutions: string[]): string =>
  (english[key]?.message ?? `no text ${key}`).replace(
    /\$(\d)/g,
    (_, index: string) => substitutions[Number(index) - 1] ?? "",
  );

function figures(atMs: number, bytes: number[], more: Partial<LiveFigures> = {}): LiveFigures {
  const proxies = bytes.map((count, index) => ({
    id: `p${index}`,
    name: `p${index}`,
    state: "open",
    bytes: count,
    packets: 0,
    innovative: 0,
    duplicate: 0,
    rttMs: null,
    lies: 0,
  }));
  return {
    transportId: "t",
    atMs,
    mode: "coded-mutp",
    proxies,
    downloads: 0,
    active: 0,
    deliveredBytes: 0,
    fallbacks: 0,
    directBytes: 0,
    uncheckedBytes: 0,
    trouble: null,
    overHttp: null,
    vouched: [],
    ...more,
  };
}

describe("popup: rates of cumulative figures", () => {
  test("after one reading, shares cover all time and there is no rate", () => {
    const { streams, bytesPerSec } = new Rates().add(figures(0, [300, 100]));
    expect([streams.map(({ share }) => share), bytesPerSec]).toEqual([[0.75, 0.25], 0]);
  });

  test("after two readings, rates and shares cover the time between them", () => {
    const rates = new Rates();
    rates.add(figures(0, [1000, 0]));
    const { streams, bytesPerSec } = rates.add(figures(500, [1500, 1500]));
    expect(streams.map(({ bytesPerSec: rate, share }) => [rate, share])).toEqual([
      [1000, 0.25],
      [3000, 0.75],
    ]);
    expect(bytesPerSec).toBe(4000);
  });

  test("readings older than three seconds do not count", () => {
    const rates = new Rates();
    rates.add(figures(0, [0]));
    for (let atMs = 500; atMs <= 6000; atMs += 500) rates.add(figures(atMs, [1000]));
    expect(rates.add(figures(6500, [1000])).bytesPerSec).toBe(0);
  });

  test("a restarted transport gives no negative rate", () => {
    const rates = new Rates();
    rates.add(figures(0, [5000]));
    expect(rates.add(figures(500, [100])).bytesPerSec).toBe(0);
  });
});

describe("popup: the wasted share", () => {
  const proxy = figures(0, [1000]).proxies[0]!;
  test.each([
    [
      "packets that bring nothing new are wasted",
      [
        { ...proxy, packets: 90, innovative: 80 },
        { ...proxy, packets: 10, innovative: 10 },
      ],
      0,
      0.1,
    ],
    ["without packets, bytes that no page received are wasted", [proxy, proxy], 1500, 0.25],
    ["without any bytes nothing is wasted", [], 0, 0],
  ])("%s", (_name, proxies, delivered, part) => expect(wastedShare(proxies, delivered)).toBeCloseTo(part));
});

describe("popup: words", () => {
  test.each([
    [0, "0 B"],
    [999, "999 B"],
    [1000, "1.00 kB"],
    [48_300_000, "48.3 MB"],
    [812_000, "812 kB"],
    [3.2e12, "3.20 TB"],
  ])("%d bytes", (bytes, text) => {
    expect(bytesText(bytes)).toBe(text);
  });

  test("a rate", () => expect(rateText(896_000)).toBe("896 kB/s"));

  test("a silent Origo is named with its address", () => {
    const trouble = {
      kind: "origoUnreachable",
      detail: "Origo at http://127.0.0.1:7600 cannot be reached: Failed to fetch",
      atMs: 0,
    };
    expect(troubleSentence(say, BUILT_IN, trouble)).toBe(
      "Origo (http://127.0.0.1:7600) does not answer. Check its address in the options.",
    );
    const inFirefox = (...origoUrls: string[]): string | null =>
      troubleSentence(say, { ...BUILT_IN, origoUrls }, trouble, true);
    for (const url of ["http://127.0.0.1:7600", "http://[::1]:7600", "http://nas.local", "http://192.168.1.2"])
      expect(inFirefox(url)).toContain("Local Network Access");
    expect(inFirefox("https://origo.example", "https://10.example")).not.toContain("Local Network Access");
    expect(troubleSentence(say, { ...BUILT_IN, enabled: false }, trouble)).toBeNull();
    expect(troubleSentence(say, { ...BUILT_IN, mode: "direct" }, trouble)).toBeNull();
  });

  test("a host that the proxies' operator does not allow is named, with what the viewer can do", () => {
    const trouble = { kind: "egressRefused", detail: "cdn.example", atMs: 0 };
    expect(troubleSentence(say, BUILT_IN, trouble)).toBe(
      "These proxies do not serve cdn.example. Ask the people who run them to allow this site, or enter " +
        "another Origo in the options.",
    );
  });

  test.each([...Object.keys(DIRECT_MS), "origoUnreachable", "noProxies", "busy", "resting", "late", "stalled"])(
    "a viewer reads what to do about %s",
    (kind) =>
      expect(troubleSentence(say, BUILT_IN, { kind, detail: "cdn.example", atMs: 0 })).toMatch(
        /(?:You need to do nothing|tell the people who run|Ask the people who run|in the options)[\w ,]*\.$/,
      ),
  );

  test("the line under the name says what Tributary does", () => {
    expect(statusSentence(say, { ...BUILT_IN, enabled: false }, null, 0)).toMatch(/^Off/);
    expect(statusSentence(say, BUILT_IN, null, 0)).toBe("Ready.");
    expect(statusSentence(say, BUILT_IN, figures(0, [1], { active: 1 }), 0)).toBe("Loading video through 1 proxy.");
    expect(statusSentence(say, BUILT_IN, figures(0, [], { active: 1 }), 0)).toBe("Connecting to the proxies…");
    expect(statusSentence(say, BUILT_IN, figures(0, [1, 1]), 2)).toBe("Loading video through 2 proxies.");
    expect(statusSentence(say, BUILT_IN, figures(0, [1, 1]), 0)).toBe("Ready. Connected to 2 proxies.");
  });
});

describe("popup: who vouches", () => {
  const publisher = { key: "ab-defghijkl", name: "film" };

  test("is said of what is playing; of what differs the weakest word counts", () => {
    const told = (...vouched: LiveFigures["vouched"]) => vouchedSentence(say, vouched);
    expect(told()).toBeNull();
    const signed = { by: "publisher", publisher, ageMs: 500 } as const;
    expect(told(signed)).toBe(
      "“film” is signed by its publisher (key\u00a0ab-\u2060defgh…), and every byte is checked.",
    );
    expect(told(signed, { by: "nobody", ageMs: 60_000 })).toBe(told(signed));
    expect(told(signed, { by: "nobody", ageMs: 1000 })).toMatch(/^One operator runs all proxies/);
    expect(told({ by: "site", ageMs: 0 }, { by: "agreement", ageMs: 9000 })).toMatch(/^Proxies of different operators/);
    expect(told({ ...signed, publisher: { ...publisher, name: "old" }, ageMs: 4000 }, signed)).toContain("“film”");
  });

  test("names proxies that were proven to send false data", () => {
    const { proxies } = figures(0, [1, 2, 3]);
    expect(liarsSentence(say, proxies)).toBeNull();
    proxies[1]!.lies = 2;
    expect(liarsSentence(say, proxies)).toMatch(/^The proxy p1 sent false data/);
    proxies[2]!.lies = 1;
    expect(liarsSentence(say, proxies)).toMatch(/dropped: p1, p2\./);
  });

  test("says how much of published videos nobody checked", () => {
    const [here, there] = [{ uncheckedBytes: 1_000_000 }, { uncheckedBytes: 500_000, transportId: "u" }];
    expect(uncheckedSentence(say, figures(0, []).uncheckedBytes)).toBeNull();
    const merge = new Merge();
    merge.add(figures(0, [], here));
    expect(uncheckedSentence(say, merge.add(figures(0, [], there)).uncheckedBytes)).toMatch(/loaded 1\.50 MB of/);
  });
});

test("popup: a proxy that brings bytes without a session is shown over HTTP", () => {
  const of = (state: string, bytesPerSec: number): Stream => ({
    ...{ id: "a", name: "a", bytes: 9, packets: 0, innovative: 0, duplicate: 0, rttMs: null, lies: 0, share: 1 },
    ...{ state, bytesPerSec },
  });
  expect([shownState(of("idle", 1), null), shownState(of("closed", 1), "blocked")]).toEqual(["http", "http"]);
  const others = [of("idle", 0), of("closed", 1), of("open", 1)];
  expect(others.map((stream) => shownState(stream, null))).toEqual(["idle", "closed", "open"]);
  const liars = [0, 1].map((bytesPerSec) => ({ ...of("open", bytesPerSec), lies: 1 }));
  expect(liars.map((stream) => shownState(stream, null))).toEqual(["dropped", "open"]);
});

describe("popup: several transports", () => {
  test("figures of two pages add up, and a silent page does not count", () => {
    const merge = new Merge();
    merge.add(figures(0, [100, 50], { deliveredBytes: 90, active: 1 }));
    const both = merge.add(figures(500, [10, 5], { transportId: "other", deliveredBytes: 9 }));
    expect(both.proxies.map(({ bytes }) => bytes)).toEqual([110, 55]);
    expect([both.deliveredBytes, both.active]).toEqual([99, 1]);
    expect(merge.add(figures(3000, [20, 5], { transportId: "other", deliveredBytes: 10 })).deliveredBytes).toBe(10);
  });
});

describe("popup: chart", () => {
  const reading = (rate: number): Parameters<History["add"]>[0] =>
    figures(0, [1, 1]).proxies.map((proxy, index) => ({ ...proxy, share: 0.5, bytesPerSec: rate * (index + 1) }));

  test("nothing is drawn while no bytes arrive", () => {
    const history = new History();
    for (let count = 0; count < 3; count++) history.add(reading(0));
    expect(history.paths(["p0", "p1"])).toEqual([]);
  });

  test("the proxies are stacked, and the highest rate fills the height", () => {
    const history = new History();
    for (const rate of [1, 2]) history.add(reading(rate));
    const [lower, upper] = history.paths(["p0", "p1"]);
    expect(lower).toContain("L300.0 32.0L");
    expect(upper).toContain("L300.0 0.0L");
  });
});

describe("texts", () => {
  test("all languages have the same texts with the same substitutions", () => {
    const holes = (texts: Messages): [string, string[]][] =>
      Object.entries(texts)
        .map(([key, { message }]): [string, string[]] => [key, (message.match(/\$\d/g) ?? []).sort()])
        .sort();
    for (const language of readdirSync(path.join(folder, "_locales")))
      expect(holes(messages(language))).toEqual(holes(english));
  });

  test("every text that a page names exists", () => {
    const pages = readdirSync(folder)
      .filter((name) => name.endsWith(".html"))
      .map((name) => readFileSync(path.join(folder, name), "utf8"));
    const named = pages.flatMap((page) =>
      [...page.matchAll(/data-say(?:-label|-title)?="([^"]+)"/g)].map(([, key]) => key ?? ""),
    );
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((key) => english[key] === undefined)).toEqual([]);
  });
});
