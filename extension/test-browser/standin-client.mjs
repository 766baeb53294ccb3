/**
 * A stand-in for @tributary/client/browser, for the transparency test only: it fetches from the origin itself, hands
 * over the headers that a proxy passes on, and fails where the address tells it to:
 * `carry=dead` (before the head), `carry=dies:BYTES` (in the middle), `carry=hang` (never answers).
 */
/* global ReadableStream */
const PASSED = ["content-type", "content-range", "etag", "last-modified", "accept-ranges", "cache-control"];
const RENAMED = ["access-control-allow-origin", "access-control-expose-headers"];

export function createBrowserClient() {
  const live = { proxies: [], downloads: 0, deliveredBytes: 0, directBytes: 0, fallbacks: 0 };
  return { live, get: (url, options) => download(url, options, live), prepare: async () => undefined, warm: async () => undefined, close: async () => undefined };
}

function download(url, { range }, live) {
  const controller = new AbortController();
  const fault = new URL(url).searchParams.get("carry") ?? "";
  const diesAt = fault.startsWith("dies:") ? Number(fault.slice(5)) : Infinity;
  live.downloads += 1;
  const response = fault === "dead" ? Promise.reject(new Error("No proxy answers")) : fault === "hang" ? new Promise(() => undefined)
    : fetch(url, { headers: range ? { Range: `bytes=${range.start}-${range.end}` } : {}, signal: controller.signal, credentials: "omit", cache: "no-store" });
  const head = response.then((answer) => ({
    status: answer.status,
    headers: headersOf(answer.headers),
    totalBytes: answer.headers.has("content-length") ? Number(answer.headers.get("content-length")) : null,
  }));
  head.catch(() => undefined);
  return { head, body: bodyOf(response, diesAt, live), record: new Promise(() => undefined), abort: () => controller.abort() };
}

function headersOf(headers) {
  const renamed = RENAMED.filter((name) => headers.has(`x-origin-${name}`)).map((name) => [name, headers.get(`x-origin-${name}`)]);
  return Object.fromEntries([...[...headers].filter(([name]) => PASSED.includes(name)), ...renamed]);
}

function bodyOf(response, diesAt, live) {
  let reader;
  let bytes = 0;
  return new ReadableStream({
    async pull(controller) {
      reader ??= (await response).body.getReader();
      const { done, value } = await reader.read();
      if (done) return controller.close();
      const piece = value.slice(0, Math.max(0, diesAt - bytes));
      bytes += piece.length;
      live.deliveredBytes += piece.length;
      if (piece.length > 0) controller.enqueue(piece);
      if (bytes >= diesAt) controller.error(new Error("All proxies are gone"));
    },
    cancel: () => reader?.cancel(),
  }, { highWaterMark: 0 });
}
