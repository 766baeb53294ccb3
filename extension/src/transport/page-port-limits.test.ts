import { COMPARE, get, make, OPEN, PAGE, settle } from "../../test/port-scene";
import { BUILT_IN } from "../shared/settings";
import { REQUESTS_AT_FIRST, WINDOW_MS } from "./allowance";
import { Trust } from "./trust";

describe("page port: hosts that limit requests", () => {
  test("a host whose answer to the proxies names a near limit goes direct from then on", async () => {
    const { port, detours } = make({ headers: { ...OPEN, "ratelimit-remaining": "11" } });
    port.send(get(1));
    await settle();
    expect([port.types(), detours.isDirect("media.example", PAGE, 0)]).toEqual([["head", "data", "end"], true]);
  });

  test.each([
    [
      "names a near limit",
      { ...COMPARE.head, headers: { ...COMPARE.head.headers, ratelimit: "limit=12, remaining=7" } },
    ],
    ["is a 429", { ...COMPARE.head, status: 429 }],
  ])("a host whose answer to the page %s goes direct, and the proxies are not asked", (_name, head) => {
    const { port, asked, detours } = make({}, {}, new Trust());
    port.send({ ...COMPARE, head });
    expect([asked, detours.trouble?.kind]).toEqual([[], "limited"]);
  });

  test("a host that refuses what it gave before is compared again when its time is over", async () => {
    const trust = new Trust();
    const headError = Object.assign(new Error("no"), { kind: "otherStatus", got: 403 });
    const page = make({ headError }, {}, trust);
    const asking = { pageOrigin: PAGE, url: new URL(COMPARE.url), range: null };
    trust.noteSame(asking, "form", [], 0);
    page.port.send(get(1));
    await settle();
    expect(page.port.answers).toEqual([{ type: "native", id: 1, compare: true }]);
    expect(trust.decide(asking, [], 0)).toBe("compare");
  });

  test("with a viewer's key in its address a host gets few requests at first", () => {
    const { port, asked, clock } = make();
    const { connections } = BUILT_IN;
    const carried = Math.floor(REQUESTS_AT_FIRST / connections);
    for (let id = 1; id <= carried + 2; id++) port.send(get(id, `https://media.example/${id}.ts?token=abc`));
    expect([asked.length, port.types()]).toEqual([carried, ["native", "native"]]);
    port.send(get(100, "https://media.example/100.ts?part=1"));
    expect(asked.length).toBe(carried + 1);
    clock.nowMs = WINDOW_MS;
    port.send(get(101, "https://media.example/101.ts?token=abc"));
    expect(asked.length).toBe(carried + 2);
  });

  test("comparisons count, too: those that a host with a key does not take are left out", () => {
    const { port, asked } = make({}, { connections: REQUESTS_AT_FIRST }, new Trust());
    port.send({ ...COMPARE, url: `${COMPARE.url}?sig=1` });
    expect([asked, port.types()]).toEqual([[], ["enough"]]);
  });

  test("a comparison is in the viewer's mode, whatever an experiment draws", () => {
    const { port, asked, pagePort } = make({}, {}, new Trust());
    port.send(COMPARE);
    expect(asked[0]?.options.mode).toBe(BUILT_IN.mode);
    pagePort.close();
  });
});
