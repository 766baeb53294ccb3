import { formatHops } from "@tributary/contract";
import type { ToPage } from "../shared/messages";
import { CREDIT_BYTES, type PortLike } from "../shared/messages";
import { BUILT_IN, type Settings } from "../shared/settings";
import { Detours, FAILURE_APART_MS, REFUSED_MS } from "./detours";
import {
  ASKS_PER_SEC_MAX,
  REQUESTS_PER_PORT_MAX,
  INVALID_MESSAGES_MAX,
  PagePort,
  type CarriedDownload,
  type PagePortHost,
} from "./page-port";

const PAGE = "https://page.example";
const OPEN = { "content-type": "video/mp4", "access-control-allow-origin": "*" };

class Port implements PortLike<ToPage> {
  heard: ToPage[] = [];
  closed = false;
  onmessage: ((event: MessageEvent) => void) | null = null;
  postMessage(message: ToPage): void {
    this.heard.push(message);
  }
  close(): void {
    this.closed = true;
  }
  send(data: unknown): void {
    this.onmessage?.({ data } as MessageEvent);
  }
  types(): string[] {
    return this.heard.slice(1).map(({ type }) => type);
  }
}

interface Given {
  status?: number;
  headers?: Record<string, string>;
  bytes?: number;
  headError?: Error;
  bodyError?: Error;
}

function download(
  { status = 200, headers = OPEN, bytes = 10, headError, bodyError }: Given,
  aborted: unknown[],
): CarriedDownload {
  const head = headError ? Promise.reject(headError) : Promise.resolve({ status, headers, totalBytes: bytes });
  head.catch(() => undefined);
  let left = bytes;
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const piece = Math.min(left, 100_000);
        left -= piece;
        if (piece > 0) controller.enqueue(new Uint8Array(piece));
        else if (bodyError) controller.error(bodyError);
        else controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  return { head, body, abort: (reason) => aborted.push(reason) };
}

function make(given: Given = {}, settings: Partial<Settings> = {}) {
  const port = new Port();
  const asked: { url: string; options: Parameters<PagePortHost["get"]>[1] }[] = [];
  const aborted: unknown[] = [];
  const reported: string[] = [];
  const closed: PagePort[] = [];
  const clock = { nowMs: 0 };
  const warming = { end: (): void => undefined };
  const detours = new Detours(() => 0);
  const pagePort: PagePort = new PagePort(port, PAGE, {
    settings: () => ({ ...BUILT_IN, ...settings }),
    get: (url, options) => {
      asked.push({ url, options });
      return download(given, aborted);
    },
    detours,
    activeCount: () => pagePort.activeCount,
    reportWrong: (url) => void reported.push(url),
    changed: () => undefined,
    warm: () => {
      reported.push("warm");
      return new Promise((resolve) => (warming.end = resolve));
    },
    closed: (ended) => void closed.push(ended),
    nowMs: () => clock.nowMs,
  });
  return { port, asked, aborted, reported, closed, clock, warming, detours, pagePort };
}

const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));
const get = (id = 1, url = "https://media.example/a.mp4", range: unknown = null): object => ({
  type: "get",
  id,
  url,
  range,
  patienceMs: 4000,
  targets: ["https://cdn.example", "https://other.example", PAGE],
});

describe("page port: a request that may be carried", () => {
  test("is answered with head, data in pieces of at most 64 KiB, and end", async () => {
    const { port, asked } = make({ bytes: 150_000 });
    port.send(get(7, "https://media.example/a.mp4?x", { start: 5, end: 150_004 }));
    await settle();
    expect(asked[0]).toEqual({
      url: "https://media.example/a.mp4?x",
      options: {
        mode: "coded",
        connections: 4,
        range: { start: 5, end: 150_004 },
        allowFallback: "proxies",
        patienceMs: 4000,
      },
    });
    expect(port.heard[0]).toEqual({ type: "hello" });
    expect(port.heard[1]).toEqual({
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
    expect([broken.port.types(), broken.port.heard.at(-1), dead.port.heard.slice(1)]).toEqual([
      ["head", "data", "failed"],
      { type: "failed", id: 1 },
      [{ type: "native", id: 1 }],
    ]);
    expect([broken.detours.fallbacks, dead.detours.fallbacks]).toEqual([1, 1]);
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
    expect(port.heard[1]).toMatchObject({
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

  test.each<[string, Given]>([
    ["an error answer", { status: 404, headers: {} }],
    ["an HTML page", { headers: { "content-type": "Text/HTML; charset=utf-8" } }],
  ])("%s of the page's own origin is answered native, of another origin it is passed on", async (_name, given) => {
    const own = make(given);
    own.port.send(get(1, `${PAGE}/a.mp4`));
    const other = make({ ...given, headers: { ...OPEN, ...given.headers } });
    other.port.send(get());
    await settle();
    expect([own.port.types(), other.port.types().at(0)]).toEqual([["native"], "head"]);
  });

  test("media of the page's own origin are passed on", async () => {
    const { port } = make({ headers: { "content-type": "video/mp4" } });
    port.send(get(1, `${PAGE}/a.mp4`));
    await settle();
    expect(port.types()).toEqual(["head", "data", "end"]);
  });

  test.each([401, 403, 429, 500, 302])("status %d is answered native", async (status) => {
    const { port } = make({ status });
    port.send(get());
    await settle();
    expect(port.types()).toEqual(["native"]);
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

describe("page port: a host that refuses proxies", () => {
  /** Asks again after `laterMs`. True if the request reached the proxies. */
  async function isAsked(
    { port, asked, clock }: ReturnType<typeof make>,
    laterMs = FAILURE_APART_MS,
  ): Promise<boolean> {
    const before = asked.length;
    clock.nowMs += laterMs;
    port.send(get(before + 1000));
    await settle();
    return asked.length > before;
  }

  test.each<[string, Given]>([
    ["with its status", { status: 403 }],
    ["with its CORS headers", { headers: {} }],
  ])("%s goes direct after three refusals in a row, for ten minutes", async (_name, given) => {
    const page = make(given);
    const asked: boolean[] = [];
    for (let count = 0; count < 4; count++) asked.push(await isAsked(page));
    expect(asked).toEqual([true, true, true, false]);
    expect([await isAsked(page, REFUSED_MS - FAILURE_APART_MS - 1), await isAsked(page, 1)]).toEqual([false, true]);
    expect(page.port.types()).toEqual(Array(6).fill("native"));
  });

  test("does not go direct after a success in between", async () => {
    const given: Given = { status: 403 };
    const page = make(given);
    for (const status of [403, 403, 200, 403, 403]) {
      given.status = status;
      await isAsked(page);
    }
    expect(await isAsked(page)).toBe(true);
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

  test(`reports wrong bytes of at most ${ASKS_PER_SEC_MAX} hosts a second`, () => {
    const { port, reported } = make();
    for (let count = 0; count <= ASKS_PER_SEC_MAX; count++)
      port.send({ type: "wrong", url: `https://${count}.example/a.mp4` });
    expect(reported.length).toBe(ASKS_PER_SEC_MAX);
  });
});

describe("page port: a page that got wrong bytes", () => {
  test("reports them to Origo once, and its next requests for that host are answered native", async () => {
    const { port, asked, reported } = make();
    const url = "https://media.example/a.mp4";
    port.send({ type: "wrong", url });
    port.send({ type: "wrong", url });
    port.send(get(1, url));
    port.send(get(2, "https://other.example/a.mp4"));
    await settle();
    expect(reported).toEqual([url]);
    expect(port.heard[1]).toEqual({ type: "native", id: 1 });
    expect(asked.map((request) => request.url)).toEqual(["https://other.example/a.mp4"]);
  });

  test("cannot report an address that is not media", () => {
    const { port, reported } = make();
    port.send({ type: "wrong", url: "https://bank.example/account" });
    expect(reported).toEqual([]);
  });
});
