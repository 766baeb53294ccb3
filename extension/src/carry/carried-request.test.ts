import type { SiteHead } from "../shared/messages";
import { HEAD, make, MEDIA, PATIENCE_MS, PUBLISHED, WHOLE, type Native } from "../../test/carried-scene";
import { REPLY_MS, STALL_MS } from "./carried-request";
import { OURS_MS, WAIT_MS_MAX, WAITS_MS } from "./site";

const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));
const ended = (seen: { events: string[] }): Promise<void> =>
  settle().then(() => (/^(end|error)$/.test(seen.events.at(-1) ?? "") ? undefined : ended(seen)));

describe("carried request: answered by the transport", () => {
  test("passes on head, bytes and end, and gives credit for the bytes that were taken", () => {
    const { carried, seen, receive, data } = make();
    receive(HEAD, data(0, 600));
    carried.credit();
    receive(data(600, 1000), { type: "end", id: 1 });
    carried.credit();
    expect([seen.events, seen.bytes, seen.credit]).toEqual([["head", "end"], [...WHOLE], 600]);
  });

  test("no event follows an abort", () => {
    const { carried, seen, receive, data, lose } = make();
    receive(HEAD);
    carried.abort();
    receive(data(0, 10));
    lose();
    expect([seen.events, seen.bytes, seen.aborts]).toEqual([["head"], [], ["abandoned"]]);
  });

  test("a page that does not read is not a stall", async () => {
    const { seen, advance, receive, data, tick } = make();
    receive(HEAD, data(0, 400));
    advance(10 * PATIENCE_MS);
    tick();
    await settle();
    expect([seen.events, seen.ranges]).toEqual([["head"], []]);
  });
});

test("carried request: bytes that are held until they are checked are no stall, and nobody asks the site", async () => {
  const { seen, sites, advance, receive, data, tick } = make();
  receive(HEAD);
  for (let times = 0; times < 10; times++) {
    advance(STALL_MS / 2);
    receive({ type: "wait", id: 1, hedgeMs: 1 });
    tick();
  }
  await settle();
  expect([seen.ranges, sites.length]).toEqual([[], 0]);
  receive(data(0, 1000), { type: "end", id: 1 });
  expect([seen.events, seen.bytes]).toEqual([["head", "end"], [...WHOLE]]);
});

const ANSWER: SiteHead = { status: 200, url: MEDIA, headers: {} };

describe("carried request: the site is asked beside the proxies", () => {
  test("after a refusal the site's answer serves the page, and the transport sees it if it wants to", async () => {
    for (const compare of [false, true]) {
      const { seen, sites, receive } = make();
      receive({ type: "native", id: 1, compare });
      sites[0]?.answer(ANSWER);
      await settle();
      expect(seen.events).toEqual(["native 0"]);
      const shown = [{ url: MEDIA, range: null, cache: "default", head: ANSWER, headMs: 0 }, 600, 400, true];
      expect([seen.compared, seen.aborts]).toEqual([compare ? shown : [], []]);
    }
  });

  test("for a published file not before the transport knows no such publication, or is lost", async () => {
    const native = make({}, null, PUBLISHED);
    native.advance(100 * REPLY_MS);
    expect(native.sites.length).toBe(0);
    native.receive({ type: "native", id: 1, compare: false });
    const lost = make({}, null, PUBLISHED);
    lost.lose();
    expect([native.sites.length, lost.sites.length]).toEqual([1, 1]);
  });

  test("at the time that the transport names, or after a while if it is silent", () => {
    const silent = make();
    silent.advance(REPLY_MS - 1);
    expect(silent.sites.length).toBe(0);
    silent.advance(1);
    expect(silent.sites.length).toBe(1);
    const told = make();
    told.receive({ type: "wait", id: 1, hedgeMs: 2000 });
    told.advance(1999);
    expect(told.sites.length).toBe(0);
    told.advance(1);
    expect([told.sites.length, told.seen.events]).toEqual([1, []]);
  });

  test("the first answer serves, and the other request ends", async () => {
    const proxies = make();
    proxies.advance(REPLY_MS);
    proxies.receive(HEAD);
    expect([proxies.seen.events, proxies.sites[0]?.isAborted]).toEqual([["head"], true]);
    const site = make();
    site.advance(REPLY_MS);
    site.sites[0]?.answer(ANSWER);
    await settle();
    site.receive(HEAD);
    expect([site.seen.events, site.sites[0]?.isAborted, site.seen.aborts]).toEqual([["native 0"], false, ["late"]]);
  });

  test("a site that cannot be reached leaves the proxies their time; then its failure is the page's", async () => {
    const { seen, sites, advance, receive } = make();
    advance(REPLY_MS);
    sites[0]?.fail(new TypeError("refused"));
    await settle();
    expect(seen.events).toEqual([]);
    receive({ type: "native", id: 1, compare: false });
    expect([seen.events, sites.length]).toEqual([["native 0"], 1]);
  });
});

describe("carried request: sealed", () => {
  const SEALED = { type: "sealed", id: 1 } as const;

  test.each<[string, string[], (made: ReturnType<typeof make>) => void]>([
    ["fails", [], ({ receive }) => receive({ type: "failed", id: 1 })],
    ["fails in the middle", ["head"], ({ receive, data }) => receive(HEAD, data(0, 400), { type: "failed", id: 1 })],
    ["ends early", ["head"], ({ receive, data }) => receive(HEAD, data(0, 400), { type: "end", id: 1 })],
    ["is lost", [], ({ lose }) => lose()],
    ["cannot give the form that the page wants", [], ({ carried }) => carried.useSite()],
  ])("if the transport %s, the site is not asked", async (_name, before, end) => {
    const made = make();
    made.receive(SEALED);
    made.advance(10 * PATIENCE_MS);
    end(made);
    await settle();
    expect([made.seen.events, made.seen.ranges, made.sites.length]).toEqual([[...before, "error"], [], 0]);
  });

  test("the site that was asked before is not used", async () => {
    const { seen, sites, advance, receive, data } = make();
    advance(REPLY_MS);
    receive(SEALED);
    expect(sites[0]?.isAborted).toBe(true);
    receive(HEAD, data(0, 400));
    advance(10 * STALL_MS);
    receive(data(400, 1000), { type: "end", id: 1 });
    await settle();
    expect([seen.events, seen.bytes.length, seen.ranges]).toEqual([["head", "end"], 1000, []]);
  });
});

describe("carried request: what the site sent is told for the record", () => {
  const END = { type: "failed", id: 1 } as const;

  test.each<[string, string[], (made: ReturnType<typeof make>) => void]>([
    ["after the proxies failed", [], ({ receive }) => receive({ type: "native", id: 1, compare: false })],
    ["after the site won the race", ["late"], ({ advance }) => advance(REPLY_MS)],
    ["because the page wants another form", ["form"], ({ carried }) => carried.useSite()],
  ])("a whole answer %s, once it has ended", async (_name, aborts, begin) => {
    const { seen, sites, advance } = ((made) => (begin(made), made))(make());
    const headMs = aborts[0] === "late" ? REPLY_MS + 5 : 5;
    advance(5);
    sites[0]?.answer(ANSWER);
    await settle();
    expect([seen.aborts, seen.told]).toEqual([aborts, []]);
    advance(100);
    sites[0]?.finish({ bytes: 70, outcome: "complete" });
    await settle();
    expect(seen.told).toEqual([{ offset: 0, bytes: 70, status: 200, headMs, outcome: "complete" }]);
  });

  test("a site that fails, too, and a page that gives up before or in the middle", async () => {
    const failed = make();
    failed.receive({ type: "native", id: 1, compare: false });
    failed.sites[0]?.fail(new TypeError("refused"));
    failed.sites[0]?.finish({ bytes: 0, outcome: "failed" });
    const before = make();
    before.receive({ type: "native", id: 1, compare: false });
    before.carried.abort();
    const middle = make({ bytes: WHOLE.slice(400, 900) });
    middle.receive(HEAD, middle.data(0, 400), END);
    middle.carried.abort();
    await settle();
    const none = { offset: 0, bytes: 0, status: 0, headMs: 0 };
    expect(failed.seen.told).toEqual([{ ...none, outcome: "failed" }]);
    expect(before.seen.told).toEqual([{ ...none, outcome: "aborted" }]);
    expect(middle.seen.told).toEqual([{ ...none, offset: 400, status: 200, outcome: "aborted" }]);
  });

  test("the rest of a body that broke off, whole or not", async () => {
    for (const [bytes, outcome] of [
      [600, "complete"],
      [500, "failed"],
    ] as const) {
      const { seen, receive, data } = make({ bytes: WHOLE.slice(400, 400 + bytes) });
      receive(HEAD, data(0, 400), END);
      await settle();
      expect(seen.told).toEqual([{ offset: 400, bytes, status: 200, headMs: 0, outcome }]);
    }
  });

  test("nothing, if the page gave up or had all from the proxies", async () => {
    const { seen, carried, receive, data } = make();
    receive(HEAD, data(0, 1000), { type: "end", id: 1 });
    const given = make();
    given.carried.abort();
    carried.abort();
    await settle();
    expect([seen.told, given.seen.told]).toEqual([[], []]);
  });
});

describe("carried request: a site that limits requests", () => {
  const refused = (status: number, headers = {}): SiteHead => ({ ...ANSWER, status, headers });
  const ask = (isOurs: boolean): ReturnType<typeof make> => {
    const made = make();
    if (isOurs) made.asked.note(MEDIA, 0);
    made.receive({ type: "native", id: 1, compare: false });
    return made;
  };

  test.each([429, 503])("%i soon after the proxies asked is not the page's answer", async (status) => {
    const { seen, sites, advance } = ask(true);
    sites[0]?.answer(refused(status, { "retry-after": "3" }));
    await settle();
    expect([seen.events, seen.limited, sites[0]?.isAborted]).toEqual([[], [MEDIA], true]);
    advance(2999);
    expect(sites.length).toBe(1);
    advance(1);
    sites[1]?.answer(ANSWER);
    await settle();
    expect(seen.events).toEqual(["native 1"]);
  });

  test.each([429, 503])(
    "%i without a time is asked again soon, and at last it is the page's answer",
    async (status) => {
      const { seen, sites, asked, advance } = ask(true);
      for (const waitMs of WAITS_MS[status] ?? []) {
        sites.at(-1)?.answer(refused(status));
        await settle();
        advance(waitMs);
      }
      const count = (WAITS_MS[status]?.length ?? 0) + 1;
      expect([sites.length, seen.events, asked.isRecent(MEDIA, 0)]).toEqual([count, [], true]);
      sites.at(-1)?.answer(refused(status));
      await settle();
      expect([seen.events, asked.isRecent(MEDIA, 0)]).toEqual([[`native ${count - 1}`], false]);
    },
  );

  test("a site that refuses again after the time that it named refuses the page", async () => {
    const { seen, sites, advance } = ask(true);
    sites[0]?.answer(refused(503, { "retry-after": "3" }));
    await settle();
    advance(3000);
    sites[1]?.answer(refused(503, { "retry-after": "3" }));
    await settle();
    expect(seen.events).toEqual(["native 1"]);
  });

  test.each<[string, boolean, number, Record<string, string>]>([
    ["without requests of the proxies", false, 429, {}],
    ["of another kind", true, 403, {}],
    ["that lasts longer than players wait", true, 429, { "retry-after": String(WAIT_MS_MAX / 1000 + 1) }],
  ])("a refusal %s is the page's answer", async (_name, isOurs, status, headers) => {
    const { seen, sites } = ask(isOurs);
    sites[0]?.answer(refused(status, headers));
    await settle();
    expect(seen.events).toEqual(["native 0"]);
  });

  test("a refusal long after the proxies asked is the page's answer", async () => {
    const { seen, sites, advance } = ask(true);
    advance(OURS_MS);
    sites[0]?.answer(refused(429));
    await settle();
    expect(seen.events).toEqual(["native 0"]);
  });
});

describe("carried request: finished natively", () => {
  const failures: [string, (made: ReturnType<typeof make>) => void][] = [
    ["the transport fails", ({ receive }) => receive({ type: "failed", id: 1 })],
    ["the transport is lost", ({ lose }) => lose()],
    ["the body ends early", ({ receive }) => receive({ type: "end", id: 1 })],
    [
      "the body stalls",
      ({ carried, advance, tick }) => {
        carried.credit();
        advance(STALL_MS + 1);
        tick();
      },
    ],
  ];

  test.each(failures)("continues from the delivered offset when %s", async (_name, fail) => {
    const made = make();
    made.receive(HEAD, made.data(0, 400));
    fail(made);
    await settle();
    expect([made.seen.events, made.seen.bytes, made.seen.ranges, made.seen.direct]).toEqual([
      ["head", "end"],
      [...WHOLE],
      ["bytes=400-"],
      600,
    ]);
  });

  test("stays within the asked range", async () => {
    const { seen, receive, data } = make({}, { start: 5000, end: 5999 });
    receive({ ...HEAD, status: 206 }, data(0, 400), { type: "failed", id: 1 });
    await settle();
    expect([seen.events, seen.ranges]).toEqual([["head", "end"], ["bytes=5400-5999"]]);
  });

  test("accepts a part whose Content-Range matches", async () => {
    const { seen, receive, data } = make(
      { headers: { "content-range": "bytes 5400-5999/9000" } },
      { start: 5000, end: 5999 },
    );
    const headers = { etag: '"v1"', "content-range": "bytes 5000-5999/9000" };
    receive({ ...HEAD, status: 206, headers }, data(0, 400), { type: "failed", id: 1 });
    await settle();
    expect(seen.events).toEqual(["head", "end"]);
  });

  test("skips the delivered bytes if the origin ignores the range", async () => {
    const { seen, receive, data } = make({ status: 200, bytes: WHOLE, headers: { "content-length": "1000" } });
    receive(HEAD, data(0, 400), { type: "failed", id: 1 });
    await settle();
    expect([seen.events, seen.bytes]).toEqual([["head", "end"], [...WHOLE]]);
  });

  const OTHER = { etag: '"v2"' };

  test.each<[string, Native]>([
    ["the rest has another validator", { headers: OTHER, whole: { headers: OTHER } }],
    ["the whole file's length has changed", { headers: { "content-range": "bytes 400-999/1001" }, whole: {} }],
    ["ranges are not given any more", { status: 416, whole: {} }],
  ])("begins again if %s, and the delivered bytes are the site's", async (_name, native) => {
    const { seen, receive, data } = make(native);
    receive(HEAD, data(0, 150), data(150, 400), { type: "failed", id: 1 });
    await ended(seen);
    expect([seen.events, seen.ranges]).toEqual([
      ["head", "end"],
      ["bytes=400-", null],
    ]);
    expect([seen.bytes, seen.direct]).toEqual([[...WHOLE], 600]);
  });

  test.each([{}, { etag: 'W/"v1"' }, { "last-modified": new Date().toUTCString() }])(
    "asks for the whole at once if the page sees no validator that proves a part: %j",
    async (headers) => {
      const { seen, receive, data } = make({ status: 200, bytes: WHOLE });
      receive({ ...HEAD, headers }, data(0, 400), { type: "failed", id: 1 });
      await ended(seen);
      expect([seen.events, seen.ranges, seen.bytes]).toEqual([["head", "end"], [null], [...WHOLE]]);
    },
  );

  test("takes an old Last-Modified for a proof if the page sees no ETag", async () => {
    const headers = { "last-modified": "Mon, 02 Nov 2020 10:00:00 GMT" };
    const { seen, receive, data } = make({ headers: { ...headers, etag: "" } });
    receive({ ...HEAD, headers }, data(0, 400), { type: "failed", id: 1 });
    await ended(seen);
    expect([seen.events, seen.ranges, seen.bytes]).toEqual([["head", "end"], ["bytes=400-"], [...WHOLE]]);
  });

  test("begins again within the asked range", async () => {
    const whole = { headers: { etag: '"v2"' }, status: 206 };
    const { seen, receive, data } = make({ headers: whole.headers, whole }, { start: 5000, end: 5999 });
    receive({ ...HEAD, status: 206 }, data(0, 400), { type: "failed", id: 1 });
    await ended(seen);
    expect([seen.events, seen.ranges, seen.bytes]).toEqual([
      ["head", "end"],
      ["bytes=5400-5999", "bytes=5000-5999"],
      [...WHOLE],
    ]);
  });

  test.each<[string, Omit<Native, "whole">]>([
    ["one delivered byte is another", { bytes: WHOLE.map((byte, at) => (at === 399 ? byte ^ 1 : byte)) }],
    ["the file is shorter than what was delivered", { bytes: WHOLE.slice(0, 399) }],
    ["its length is another", { headers: { "content-length": "1001" } }],
    ["it breaks off", { bytes: WHOLE.slice(0, 900) }],
  ])("does not join what is not one body: %s", async (_name, whole) => {
    const { seen, receive, data } = make({ headers: OTHER, whole });
    receive(HEAD, data(0, 400), { type: "failed", id: 1 });
    await ended(seen);
    expect(seen.events).toEqual(["head", "error"]);
  });

  test.each<[string, Native | Error]>([
    ["the file has changed", { headers: { etag: '"v2"' } }],
    ["the whole file's length has changed", { headers: { "content-range": "bytes 400-999/1001" } }],
    ["another part is sent", { headers: { "content-range": "bytes 0-599/1000" } }],
    ["the length has changed", { headers: { "content-length": "599" } }],
    ["the rest is short", { bytes: WHOLE.slice(400, 900) }],
    ["the origin says 404", { status: 404 }],
    ["the network is down", new TypeError("Failed to fetch")],
  ])("ends in an error when %s", async (_name, native) => {
    const { seen, receive, data } = make(native);
    receive(HEAD, data(0, 400), { type: "failed", id: 1 });
    await settle();
    expect(seen.events).toEqual(["head", "error"]);
  });

  test("fetches nothing after all bytes were delivered", async () => {
    const { seen, receive, data, lose } = make();
    receive(HEAD, data(0, 1000));
    lose();
    await settle();
    expect([seen.events, seen.ranges]).toEqual([["head", "end"], []]);
  });
});

describe("carried request: proxies that stall", () => {
  const stalled = (native: Native | Error = {}): ReturnType<typeof make> => {
    const made = make(native);
    made.receive(HEAD, made.data(0, 400));
    made.carried.credit();
    made.advance(STALL_MS + 1);
    made.tick();
    return made;
  };

  test("go on if their bytes come before the site's answer", async () => {
    const { seen, receive, data } = stalled();
    receive(data(400, 700));
    await settle();
    receive(data(700, 1000), { type: "end", id: 1 });
    expect([seen.events, seen.bytes, seen.direct]).toEqual([["head", "end"], [...WHOLE], 0]);
  });

  test("go on if the site does not give the rest, which is asked for once", async () => {
    const { seen, advance, tick, receive, data } = stalled({ headers: { etag: '"v2"' } });
    await settle();
    advance(STALL_MS + 1);
    tick();
    receive(data(400, 1000), { type: "end", id: 1 });
    expect([seen.events, seen.bytes, seen.ranges]).toEqual([["head", "end"], [...WHOLE], ["bytes=400-", null]]);
  });

  test("may fail after they brought more: the rest of that is asked for", async () => {
    const { seen, receive, data } = stalled({ bytes: WHOLE.slice(700), headers: {} });
    receive(data(400, 700), { type: "failed", id: 1 });
    await settle();
    expect([seen.events, seen.bytes, seen.ranges]).toEqual([["head", "end"], [...WHOLE], ["bytes=400-", "bytes=700-"]]);
  });
});
