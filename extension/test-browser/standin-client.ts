/**
 * A stand-in for @tributary/client/browser in the transparency test. It fetches from the origin itself and passes on
 * the headers that a proxy passes on. The address can make it fail: `carry=dead` (before the head), `carry=dies:BYTES`
 * (in the middle), `carry=hang` (it never answers). `globalThis.warmCount` counts the calls of `warm`, which take
 * WARM_MS.
 */
import { formatHops } from "@tributary/contract";
import type { Client } from "../src/transport/hub";

type Download = ReturnType<Client["get"]>;
type Live = Client["live"];

export const randomUuid = (): string => crypto.randomUUID();

/** What a proxy sends under the origin's own names. */
const OWN = /^(?!access-control-|x-origin-)/;
const WARM_MS = 100;
const counts = globalThis as typeof globalThis & { warmCount: number };
counts.warmCount = 0;

export function createBrowserClient(): Client {
  const totals = { downloads: 0, deliveredBytes: 0, directBytes: 0, fallbacks: 0 };
  const live: Live = { proxies: [], ...totals, isOverHttp: false, vouched: [] };
  return {
    live,
    get: (url, options) => download(url, options?.range, live),
    prepare: async () => undefined,
    warm: () => {
      counts.warmCount += 1;
      return new Promise((resolve) => setTimeout(resolve, WARM_MS));
    },
    isPublished: () => false,
    check: () => undefined,
    reportError: () => undefined,
    close: async () => undefined,
  };
}

function download(url: string, range: { start: number; end: number } | undefined, live: Live): Download {
  const controller = new AbortController();
  const fault = new URL(url).searchParams.get("carry") ?? "";
  const diesAt = fault.startsWith("dies:") ? Number(fault.slice(5)) : Infinity;
  live.downloads += 1;
  const response =
    fault === "dead"
      ? Promise.reject(new Error("No proxy answers"))
      : fault === "hang"
        ? new Promise<never>(() => undefined)
        : fetch(url, {
            headers: range ? { Range: `bytes=${range.start}-${range.end}` } : {},
            signal: controller.signal,
            credentials: "omit",
            cache: "no-store",
          });
  const head = response.then((answer) => ({
    status: answer.status,
    headers: {
      ...headersOf(answer.headers),
      ...(answer.redirected ? { location: answer.url, hops: hopsOf(url) } : {}),
    },
    totalBytes: answer.headers.has("content-length") ? Number(answer.headers.get("content-length")) : null,
  }));
  head.catch(() => undefined);
  return {
    head,
    body: bodyOf(response, diesAt, live),
    record: new Promise(() => undefined),
    abort: () => controller.abort(),
  };
}

/** The origin says in the address which Access-Control-Allow-Origin its one redirect has. */
function hopsOf(url: string): string {
  const { origin, searchParams } = new URL(url);
  return formatHops([{ origin, allowedOrigin: searchParams.get("acao"), setsCookie: false }]);
}

function headersOf(headers: Headers): Record<string, string> {
  return Object.fromEntries(
    [...headers].flatMap(([name, value]) => {
      if (name.startsWith("x-origin-")) return [[name.slice("x-origin-".length), value]];
      return OWN.test(name) ? [[name, value]] : [];
    }),
  );
}

function bodyOf(response: Promise<Response>, diesAt: number, live: Live): ReadableStream<Uint8Array> {
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  let bytes = 0;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        reader ??= (await response).body!.getReader();
        const { done, value } = await reader.read();
        if (done) return controller.close();
        const piece = value.slice(0, Math.max(0, diesAt - bytes));
        bytes += piece.length;
        live.deliveredBytes += piece.length;
        if (piece.length > 0) controller.enqueue(piece);
        if (bytes >= diesAt) controller.error(new Error("All proxies are gone"));
      },
      cancel: () => reader?.cancel(),
    },
    { highWaterMark: 0 },
  );
}
