import type * as Module from "./browser-proxy";

const PROXY = { id: "a", name: "one", url: "http://proxy" };
const SECURE = { ...PROXY, webTransport: { url: "https://proxy/", certificateHashes: [] } };
const ANSWER = "a=candidate:1 1 udp 2130706431 203.0.113.1 4433 typ host\r\n";

/** The browser sends attempts, or refuses them after a delay, which grows with each attempt that failed. */
let isProxied = false;
let sent: string[] = [];
let failed = 0;

class BrowserWebTransport {
  readonly closed = new Promise<void>(() => undefined);
  readonly ready: Promise<void>;

  constructor(url: string) {
    const { port } = new URL(url);
    const delayMs = failed++ === 0 ? 0 : 10 * 2 ** failed;
    const isRefused = isProxied || port === "1";
    if (!isRefused) sent.push(url);
    this.ready = new Promise((resolve, reject) => {
      if (isRefused) setTimeout(reject, delayMs, new Error("Opening handshake failed."));
      else if (url.startsWith("https://proxy")) setTimeout(resolve, 1);
    });
  }

  close(): void {
    failed--;
  }
}

let proxies: typeof Module;
beforeEach(async () => {
  jest.useFakeTimers();
  [isProxied, sent, failed] = [false, [], 0];
  const fetchNothing = () => Promise.resolve(new Response());
  Object.assign(globalThis, { WebTransport: BrowserWebTransport, fetch: fetchNothing });
  jest.resetModules();
  proxies = await import("./browser-proxy");
});
afterEach(() => jest.useRealTimers());

async function after<T>(ms: number, asked: Promise<T>): Promise<T> {
  await jest.advanceTimersByTimeAsync(ms);
  return asked;
}

test.each([0, 1, 5])(
  "browser proxy: packets are sent only if the browser has no proxy, after %i failed attempts",
  async (count) => {
    failed = count;
    expect(await after(20_000, proxies.isPathClear(PROXY, ANSWER))).toBe(true);
    await jest.advanceTimersByTimeAsync(120_000);
    [isProxied, failed] = [true, count];
    expect(await after(20_000, proxies.isPathClear(PROXY, ANSWER))).toBe(false);
  },
);

test("browser proxy: nothing is sent if the browser's delay hides what it does", async () => {
  failed = 9;
  expect(await after(20_000, proxies.isPathClear(PROXY, ANSWER))).toBe(false);
});

test("browser proxy: an open path is found shut when the browser gets a proxy", async () => {
  expect(await after(20_000, proxies.isPathShut(SECURE))).toBe(false);
  expect(await after(20_000, proxies.isPathClear(PROXY, ANSWER))).toBe(true);
  isProxied = true;
  expect(await after(20_000, proxies.isPathShut(SECURE))).toBe(true);
  await jest.advanceTimersByTimeAsync(120_000);
  expect(await after(20_000, proxies.isPathShut(PROXY))).toBe(true);
});
