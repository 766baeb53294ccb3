import { formatHops } from "@tributary/contract";
import { CARRYING, get, make, OPEN, PAGE, settle, COMPARE, type Given } from "../../test/port-scene";
import { CREDIT_BYTES } from "../shared/messages";
import { DIRECT_MS } from "./detours";
import { HEDGE_MS_UNKNOWN, SLOW_MS } from "./pace";
import { ASKS_PER_SEC_MAX, HELD_MS, REQUESTS_PER_PORT_MAX, INVALID_MESSAGES_MAX, VERDICT_MS } from "./page-port";
import { Trust, type Asking } from "./trust";

describe("page port: a request that may be carried", () => {
  test("is answered with head, data in pieces of at most 64 KiB, and end", async () => {
    const { port, asked } = make({ bytes: 150_000 });
    port.send(get(7, "https://media.example/a.mp4?x", { start: 5, end: 150_004 }));
    await settle();
    expect(asked[0]).toMatchObject({
      url: "https://media.example/a.mp4?x",
      options: { range: { start: 5, end: 150_004 }, allowFallback: "proxies", verbatim: true, patienceMs: 4000 },
    });
    expect(port.heard[0]).toEqual({ type: "hello" });
    expect(port.answers[0]).toEqual({
      type: "head",
      id: 7,
      status: 200,
      statusText: "OK",
      responseType: "cors",
      totalBytes: 150_000,
      headers: { "content-type": "video/mp4", "content-length": "150000" },
      url: "https://media.example/a.mp4?x",
      redirected: false,
    });
    const sizes = port.heard.flatMap((message) => (message.type === "data" ? [message.buffer.byteLength] : []));
    expect([Math.max(...sizes), sizes.reduce((sum, size) => sum + size, 0)]).toEqual([65_536, 150_000]);
    expect(port.types().at(-1)).toBe("end");
  });

  test("after `warm` the host opens sessions and no download starts", () => {
    const { port, asked, reported } = make();
    port.send({ type: "warm" });
    expect([reported, asked]).toEqual([["warm"], []]);
  });

  test("an empty body gives a head and an end", async () => {
    const { port } = make({ bytes: 0 });
    port.send(get());
    await settle();
    expect(port.types()).toEqual(["head", "end"]);
  });

  test("stops when the page's credit is used up and continues with more", async () => {
    const { port } = make({ bytes: CREDIT_BYTES + 500_000 });
    const sent = (): number =>
      port.heard.reduce((sum, message) => sum + (message.type === "data" ? message.buffer.byteLength : 0), 0);
    port.send(get());
    await settle();
    expect(sent()).toBeGreaterThanOrEqual(CREDIT_BYTES);
    expect(sent()).toBeLessThan(CREDIT_BYTES + 65_536);
    port.send({ type: "credit", id: 1, bytes: CREDIT_BYTES });
    await settle();
    expect([sent(), port.types().at(-1)]).toEqual([CREDIT_BYTES + 500_000, "end"]);
  });

  test("an abort ends the download, even while it waits for credit", async () => {
    const { port, aborted, pagePort } = make({ bytes: 2 * CREDIT_BYTES });
    port.send(get());
    await settle();
    port.send({ type: "abort", id: 1 });
    await settle();
    expect([aborted.length, pagePort.activeCount, port.types().at(-1)]).toEqual([1, 0, "data"]);
  });

  test("a failure in the middle is reported, and one before the head is answered native", async () => {
    const broken = make({ bytes: 100, bodyError: new Error("gone") });
    broken.port.send(get());
    const dead = make({ headError: new Error("no proxy") });
    dead.port.send(get());
    await settle();
    expect([broken.port.types(), broken.port.heard.at(-1), dead.port.answers]).toEqual([
      ["head", "data", "failed"],
      { type: "failed", id: 1 },
      [{ type: "native", id: 1, compare: false }],
    ]);
    expect([broken.detours.fallbacks, dead.detours.fallbacks]).toEqual([1, 1]);
  });
});

describe("page port: the site's own digests", () => {
  test("the client may ask for them at the page's own origin, and at hosts whose answers were compared", async () => {
    const trust = { ...CARRYING, isMet: ({ url }: Asking) => url.host === "met.example" };
    const { port, asked, reported } = make({}, {}, trust as unknown as Trust);
    for (const [id, origin] of [PAGE, "https://met.example", "https://new.example"].entries())
      port.send(get(id, `${origin}/a.mp4`));
    await settle();
    const [own, met, other] = asked.map(({ options }) => options.mayAskSite);
    expect([await own?.(`${PAGE}/api`), await met?.("https://met.example/api"), other]).toEqual([
      true,
      true,
      undefined,
    ]);
    expect(reported).toEqual([`may ${PAGE} ask ${PAGE}/api`, `may ${PAGE} ask https://met.example/api`]);
  });

  test("the page hears now and then that bytes come which are held, but not before the head", async () => {
    const { port, asked, clock } = make({ bytes: 2 * CREDIT_BYTES });
    port.send(get());
    const told = () => port.heard.filter(({ type }) => type === "wait").length;
    const before = told();
    asked[0]?.options.onHeld?.();
    expect(told()).toBe(before);
    await settle();
    for (const ms of [0, 1, HELD_MS - 1, 1]) {
      clock.nowMs += ms;
      asked[0]?.options.onHeld?.();
    }
    expect(told()).toBe(before + 2);
    port.send({ type: "abort", id: 1 });
    clock.nowMs += HELD_MS;
    asked[0]?.options.onHeld?.();
    expect(told()).toBe(before + 2);
  });
});

describe("page port: a published file", () => {
  const published: Given = { isPublished: true };
  const doubting = { ...CARRYING, decide: () => "compare", isKnown: () => false } as unknown as Trust;

  test("is carried without a comparison, and its host may be direct", async () => {
    const { port, asked, detours } = make(published, {}, doubting);
    detours.noteDirectHost("media.example", PAGE, "cors", "media.example", 0);
    port.send(get());
    await settle();
    expect(port.heard.map(({ type }) => type).slice(-4)).toEqual(["sealed", "head", "data", "end"]);
    expect(asked[0]?.options).not.toHaveProperty("patienceMs");
  });

  test.each<[string, Given, string[]]>([
    ["that fails before its head", { headError: new Error("no true bytes") }, ["failed"]],
    ["that fails in the middle", { bytes: 100, bodyError: new Error("gone") }, ["head", "data", "failed"]],
    ["that is not shared with the page", { headers: {} }, ["failed"]],
  ])("%s is never asked of the site", async (_name, given, types) => {
    const { port, detours } = make({ ...published, ...given });
    port.send(get());
    await settle();
    expect(port.types().filter((type) => type !== "sealed")).toEqual(types);
    expect(detours.fallbacks).toBe(1);
  });

  test("that an element got from the browser is counted as unchecked, and no other file is", () => {
    const { port, detours } = make(published);
    port.send({ type: "unchecked", url: "https://media.example/v/a.mp4", bytes: 5 });
    port.send({ type: "unchecked", url: "nonsense", bytes: 5 });
    const other = make();
    other.port.send({ type: "unchecked", url: "https://media.example/v/a.mp4", bytes: 5 });
    other.port.send({ type: "unchecked", url: `https://p.example/v1/objects/${"0".repeat(64)}-9?type=a`, bytes: 7 });
    expect([detours.uncheckedBytes, other.detours.uncheckedBytes]).toEqual([5, 7]);
  });

  test("that does not exist is answered so", async () => {
    const { port } = make({ ...published, status: 404, bytes: 0 });
    port.send(get());
    await settle();
    expect(port.heard.find(({ type }) => type === "head")).toMatchObject({ status: 404, statusText: "Not Found" });
  });
});

describe("page port: a request that may not be carried", () => {
  test.each([
    ["file:///etc/passwd.mp4"],
    ["chrome-extension://x/y.mp4"],
    ["https://media.example/a.json"],
    ["https://u:p@media.example/a.mp4"],
    ["nonsense"],
  ])("%s is answered native and no download starts", async (url) => {
    const { port, asked } = make();
    port.send(get(1, url));
    await settle();
    expect([port.types(), asked.length]).toEqual([["native"], 0]);
  });

  test.each([
    [{}],
    [{ "access-control-allow-origin": "https://other.example" }],
    [{ "access-control-allow-origin": "null" }],
  ])("an answer with %j is not shown to another origin", async (headers) => {
    const { port, aborted } = make({ headers });
    port.send(get());
    await settle();
    expect([port.types(), aborted.length]).toEqual([["native"], 1]);
  });

  test("the proxies ask for the page, and an answer for its origin alone is shown", async () => {
    const { port, asked } = make({ headers: { "access-control-allow-origin": PAGE } });
    port.send(get());
    await settle();
    expect([asked[0]?.options.pageOrigin, port.types()[0]]).toEqual([PAGE, "head"]);
  });

  test("an answer redirected from the page's own origin to one that does not share is not shown", async () => {
    const { port } = make({ headers: { location: "https://other.example/a.mp4" } });
    port.send(get(1, `${PAGE}/a.mp4`));
    await settle();
    expect(port.types()).toEqual(["native"]);
  });

  const HOPS = formatHops([{ origin: "https://media.example", allowedOrigin: "*", setsCookie: false }]);

  test("a redirected answer names its final address", async () => {
    const { port } = make({ headers: { ...OPEN, location: "https://cdn.example/b.mp4", hops: HOPS } });
    port.send(get());
    await settle();
    expect(port.answers[0]).toMatchObject({
      type: "head",
      responseType: "cors",
      url: "https://cdn.example/b.mp4",
      redirected: true,
    });
  });

  test.each([
    ["an end that the page's browser has not reached", { location: "https://evil.example/b.mp4", hops: HOPS }],
    ["an end without its address", { hops: HOPS }],
    ["an end without its hops", { location: "https://cdn.example/b.mp4" }],
    ["hops from elsewhere", { location: "https://cdn.example/b.mp4", hops: HOPS.replace("media", "other") }],
    ["hops that do not parse", { location: "https://cdn.example/b.mp4", hops: "[1]" }],
    ["a hop that does not share", { location: "https://cdn.example/b.mp4", hops: HOPS.replace('"*"', "null") }],
  ])("an answer with %s is native", async (_name, headers) => {
    const { port } = make({ headers: { ...OPEN, ...headers } });
    port.send(get());
    await settle();
    expect(port.types()).toEqual(["native"]);
  });

  test("an answer of the page's own origin that sets a cookie is native", async () => {
    const { port } = make({ headers: { "set-cookie": "" } });
    port.send(get(1, `${PAGE}/a.mp4`));
    await settle();
    expect(port.types()).toEqual(["native"]);
  });

  test.each<[string, Given, string?]>([
    [
      "an HTML page of the page's own origin",
      { headers: { "content-type": "Text/HTML; charset=utf-8" } },
      `${PAGE}/a.mp4`,
    ],
    ["an answer by cookies of the page's own origin", { headers: { vary: "Accept, Cookie" } }, `${PAGE}/a.mp4`],
    [
      "an answer for one viewer of the page's own origin",
      { headers: { "cache-control": "private, max-age=60" } },
      `${PAGE}/a.mp4`,
    ],
    ["an answer by the login of the page's own origin", { headers: { vary: "Authorization" } }, `${PAGE}/a.mp4`],
    ["an answer by anything at all of the page's own origin", { headers: { vary: "*" } }, `${PAGE}/a.mp4`],
    ["an answer that is not shared with the page", { headers: {} }],
    ...[302, 401, 403, 404, 410, 416, 429, 451, 500, 503].flatMap((status): [string, Given][] => [
      [`status ${status}`, { status }],
      [
        `a download that ended with ${status}`,
        { headError: Object.assign(new Error("no"), { kind: "otherStatus", got: status }) },
      ],
    ]),
  ])(
    "%s is answered native, and the host is direct at once and for long",
    async (_name, given, url = "https://media.example/a.mp4") => {
      const { port, asked, clock, detours } = make(given);
      port.send(get(1, url));
      await settle();
      expect(port.answers).toEqual([{ type: "native", id: 1, compare: true }]);
      const reason = detours.trouble?.kind;
      if (reason !== "status" && reason !== "cors" && reason !== "limited") throw new Error(`the reason is ${reason}`);
      clock.nowMs = DIRECT_MS[reason] - 1;
      port.send(get(2, url));
      await settle();
      expect([asked.length, port.answers[1]]).toEqual([1, { type: "native", id: 2, compare: false }]);
      clock.nowMs += 1;
      port.send(get(3, url));
      expect(asked.length).toBe(2);
    },
  );

  test("a refusal that the site gives the page, too, is no reason to go direct", async () => {
    const { port, asked } = make({ status: 404 });
    port.send(get(1));
    await settle();
    port.send({ ...COMPARE, id: 1, head: { ...COMPARE.head, status: 404 } });
    port.send(get(2));
    expect(asked.length).toBe(2);
  });

  test("media of the page's own origin are passed on", async () => {
    const { port } = make({ headers: { "content-type": "video/mp4" } });
    port.send(get(1, `${PAGE}/a.mp4`));
    await settle();
    expect(port.types()).toEqual(["head", "data", "end"]);
  });

  // A page sends no cookies to other origins, so it is a stranger there, as the proxies are.
  test.each<[Record<string, string>, string]>([
    [{ "cache-control": "no-store" }, PAGE],
    [{ "cache-control": 'private="set-cookie"' }, PAGE],
    [{ "cache-control": "no-store" }, "https://media.example"],
    [{ "cache-control": "private" }, "https://media.example"],
    [{ vary: "Cookie" }, "https://media.example"],
    [{ vary: "*" }, "https://media.example"],
  ])("an answer with %j of %s is passed on", async (headers, origin) => {
    const { port } = make({ headers: { ...OPEN, ...headers } });
    port.send(get(1, `${origin}/a.mp4`));
    await settle();
    expect(port.types()).toEqual(["head", "data", "end"]);
  });

  test.each([[{ enabled: false }], [{ mode: "direct" as const }]])(
    "with %j everything is answered native",
    async (settings) => {
      const { port, asked, detours } = make({}, settings);
      port.send(get());
      await settle();
      expect([port.types(), asked.length, detours.trouble]).toEqual([["native"], 0, null]);
    },
  );

  test(`${REQUESTS_PER_PORT_MAX} requests at once are carried, one more is not`, async () => {
    const { port, asked } = make({ bytes: 2 * CREDIT_BYTES });
    for (let id = 0; id <= REQUESTS_PER_PORT_MAX; id++) port.send(get(id));
    await settle();
    expect([asked.length, port.types().filter((type) => type === "native").length]).toEqual([REQUESTS_PER_PORT_MAX, 1]);
  });

  test(`${INVALID_MESSAGES_MAX - 1} invalid messages are dropped, one more closes the port`, () => {
    const { port, pagePort, closed } = make();
    for (let count = 1; count < INVALID_MESSAGES_MAX; count++)
      port.send({ type: "settings", origoUrl: "https://evil.example" });
    expect(port.closed).toBe(false);
    port.send(null);
    expect([port.closed, port.onmessage, closed]).toEqual([true, null, [pagePort]]);
  });
});

describe("page port: what was not compared is not carried", () => {
  const shown = async ({ port }: ReturnType<typeof make>, id: number, body: Uint8Array<ArrayBuffer>): Promise<void> => {
    port.send({ ...COMPARE, id });
    port.send({ type: "site-bytes", id, buffer: body.slice().buffer });
    port.send({ type: "site-end", id, isWhole: true });
    await settle();
  };

  test("the first request goes native, and after equal answers the next one of its kind is carried", async () => {
    const page = make({}, {}, new Trust());
    page.port.send(get(1));
    expect([page.port.answers, page.asked]).toEqual([[{ type: "native", id: 1, compare: true }], []]);
    await shown(page, 1, new Uint8Array(10));
    page.port.send(get(2, "https://media.example/b7.mp4"));
    await settle();
    expect(page.port.types()).toEqual(["native", "enough", "native"]);
    page.port.send(get(3));
    await settle();
    expect(page.port.types().slice(3)).toEqual(["head", "data", "end"]);
  });

  test.each<[string, Partial<Given>, Uint8Array<ArrayBuffer>]>([
    ["other bytes", {}, Uint8Array.from({ length: 10 }, (_, at) => Number(at === 9))],
    ["fewer bytes", {}, new Uint8Array(9)],
    ["more bytes", {}, new Uint8Array(11)],
    ["another type", { headers: { ...OPEN, "content-type": "video/webm" } }, new Uint8Array(10)],
    ["another status", { status: 206 }, new Uint8Array(10)],
  ])("a host that gives the proxies %s stays direct, and Origo hears of it", async (_name, given, body) => {
    const page = make(given, {}, new Trust());
    page.port.send(get(1));
    await shown(page, 1, body);
    page.port.send(get(2));
    expect(page.port.answers.at(-1)).toEqual({ type: "native", id: 2, compare: false });
    expect([page.asked.length, page.detours.trouble?.kind, page.reported]).toEqual([
      1,
      "differs",
      ["https://media.example/a.mp4"],
    ]);
  });

  test("an answer of another form than the compared one goes native, to be compared", async () => {
    const given: Given = {};
    const page = make(given, {}, new Trust());
    page.port.send(get(1));
    await shown(page, 1, new Uint8Array(10));
    given.headers = { ...OPEN, "content-type": "audio/mp4" };
    page.port.send(get(2));
    await settle();
    expect(page.port.answers.at(-1)).toEqual({ type: "native", id: 2, compare: true });
    const head = { ...COMPARE.head, headers: { ...COMPARE.head.headers, "content-type": "audio/mp4" } };
    page.port.send({ ...COMPARE, head, id: 2 });
    page.port.send({ type: "site-bytes", id: 2, buffer: new ArrayBuffer(10) });
    page.port.send({ type: "site-end", id: 2, isWhole: true });
    await settle();
    page.port.send(get(3));
    await settle();
    expect(page.port.answers).toContainEqual(expect.objectContaining({ type: "head", id: 3 }));
  });

  test("a request during the comparison of its kind waits for the verdict, for a moment", async () => {
    const page = make({}, {}, new Trust());
    page.port.send({ ...COMPARE, id: 1 });
    page.port.send(get(2));
    page.port.send({ type: "site-bytes", id: 1, buffer: new ArrayBuffer(10) });
    page.port.send({ type: "site-end", id: 1, isWhole: true });
    await settle();
    expect(page.port.types()).toEqual(["enough", "head", "data", "end"]);
    const slow = make({}, {}, new Trust());
    slow.port.send({ ...COMPARE, id: 1 });
    slow.port.send(get(2));
    await new Promise((resolve) => setTimeout(resolve, VERDICT_MS + 50));
    expect(slow.port.answers).toEqual([{ type: "native", id: 2, compare: false }]);
    slow.pagePort.close();
  });
});

describe("page port: proxies that are slow or fail", () => {
  test("the page hears when to ask the site, too", () => {
    const { port, pace } = make();
    port.send(get(1));
    expect(port.heard[1]).toEqual({ type: "wait", id: 1, hedgeMs: HEDGE_MS_UNKNOWN });
    pace.note(`${PAGE} media.example`, 1000);
    port.send(get(2));
    expect(port.heard.at(-1)).toEqual({ type: "wait", id: 2, hedgeMs: 1300 });
  });

  test("a host that takes long to its first byte goes direct", () => {
    const { port, asked, pace, detours } = make();
    pace.note(`${PAGE} media.example`, SLOW_MS + 1);
    port.send(get(1));
    expect([port.types(), asked, detours.trouble?.kind]).toEqual([["native"], [], "slow"]);
  });

  test("a page that the site answered first makes the proxies late, one that gave up does not", async () => {
    const { port, reported } = make({ headError: new Error("never") });
    port.send(get(1));
    port.send({ type: "abort", id: 1, why: "late" });
    port.send(get(2));
    port.send({ type: "abort", id: 2 });
    await settle();
    expect(reported).toEqual(["late: media.example itself answered first, after 0 ms"]);
  });

  test("a host that limits requests goes direct", () => {
    const { port, asked, detours } = make();
    port.send({ type: "limited", url: "https://media.example/a.mp4" });
    port.send(get(1));
    expect([port.types(), asked, detours.trouble?.kind]).toEqual([["native"], [], "limited"]);
  });
});

describe("page port: a page that floods its port", () => {
  test(`is carried ${ASKS_PER_SEC_MAX} times a second, aborted requests included, then answered native`, async () => {
    const { port, asked, clock } = make();
    const flood = (): void => {
      for (let id = 0; id <= ASKS_PER_SEC_MAX; id++)
        [get(id), { type: "abort", id }].forEach((message) => port.send(message));
    };
    flood();
    await settle();
    expect([asked.length, port.types()]).toEqual([ASKS_PER_SEC_MAX, ["native"]]);
    clock.nowMs = 999;
    flood();
    expect(asked.length).toBe(ASKS_PER_SEC_MAX);
    clock.nowMs = 1000;
    flood();
    expect(asked.length).toBe(2 * ASKS_PER_SEC_MAX);
  });

  test("opens sessions once at a time", async () => {
    const { port, reported, warming } = make();
    for (let count = 0; count < 10; count++) port.send({ type: "warm" });
    expect(reported).toEqual(["warm"]);
    warming.end();
    await settle();
    port.send({ type: "warm" });
    expect(reported).toEqual(["warm", "warm"]);
  });

  test(`opens sessions at most ${ASKS_PER_SEC_MAX} times a second`, async () => {
    const { port, reported, warming } = make();
    for (let count = 0; count <= ASKS_PER_SEC_MAX; count++) {
      port.send({ type: "warm" });
      warming.end();
      await new Promise(setImmediate);
    }
    expect(reported.length).toBe(ASKS_PER_SEC_MAX);
  });
});
