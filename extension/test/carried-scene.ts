/** What the tests of carried requests share: a page, a transport and a site whose every step a test takes. */
import type { ByteRange } from "@tributary/contract";
import type { CarriedRequestEvents, SiteBody, SiteEnd, SiteRequest } from "../src/shared/carry";
import type { Fetched, SiteHead, ToPage } from "../src/shared/messages";
import type { CallListener, Calls } from "../src/carry/calls";
import { CarriedRequest } from "../src/carry/carried-request";
import { Asked } from "../src/carry/site";

export const MEDIA = "https://media.example/a.mp4";
export const PUBLISHED = `https://origo.example/v/${"k".repeat(43)}/film/a.mp4`;
export const PATIENCE_MS = 4000;
export const HEAD: Extract<ToPage, { type: "head" }> = {
  type: "head",
  id: 1,
  status: 200,
  statusText: "OK",
  headers: { etag: '"v1"' },
  responseType: "cors",
  url: "https://o.test/seg.m4s",
  redirected: false,
  totalBytes: 1000,
};
export const WHOLE = Uint8Array.from({ length: 1000 }, (_, index) => index % 251);
export interface Native {
  /** The answer to a request for the whole; undefined if the answer to a range is for it, too. */
  whole?: Omit<Native, "whole">;
  status?: number;
  headers?: Record<string, string>;
  bytes?: Uint8Array<ArrayBuffer>;
}

/** A request to the site that a test answers. */
export class Site implements SiteRequest {
  answer!: (head: SiteHead) => void;
  fail!: (error: Error) => void;
  isAborted = false;
  finish!: (end: SiteEnd) => void;
  readonly end = new Promise<SiteEnd>((resolve) => (this.finish = resolve));
  readonly head = new Promise<SiteHead>((resolve, reject) => ([this.answer, this.fail] = [resolve, reject]));
  copy(): SiteBody {
    const pieces = [WHOLE.slice(0, 600), WHOLE.slice(600)];
    return { read: async () => pieces.shift(), stop: () => undefined };
  }
  abort(): void {
    this.isAborted = true;
  }
}

export function make(native: Native | Error = {}, range: ByteRange | null = null, url = MEDIA) {
  let listener: CallListener | undefined;
  const seen = {
    events: [] as string[],
    bytes: [] as number[],
    credit: 0,
    aborts: [] as string[],
    told: [] as Fetched[],
    direct: 0,
    limited: [] as string[],
    compared: [] as unknown[],
    ranges: [] as (string | null)[],
  };
  const clock = { nowMs: 0, timers: new Map<number, { atMs: number; callback: () => void }>() };
  const sites: Site[] = [];
  const asked = new Asked();
  const timing = {
    nowMs: () => clock.nowMs,
    setTimeout: (callback: () => void, ms: number) => {
      const id = clock.timers.size + 1;
      clock.timers.set(id, { atMs: clock.nowMs + ms, callback });
      return id;
    },
    clearTimeout: (id: number) => clock.timers.get(id) && clock.timers.set(id, { atMs: Infinity, callback: () => 0 }),
  };
  const calls = {
    link: { noteDirect: (bytes: number) => (seen.direct += bytes), allows: () => true },
    clock: timing,
    noteLimited: (url: string) => seen.limited.push(url),
    compare: (answer: unknown) => {
      seen.compared.push(answer);
      return {
        send: ({ length }: Uint8Array) => Boolean(seen.compared.push(length)),
        end: (isWhole: boolean) => seen.compared.push(isWhole),
      };
    },
    call: (_request: unknown, given: CallListener) => {
      listener = given;
      return {
        credit: (bytes: number) => (seen.credit += bytes),
        abort: (why = "abandoned") => seen.aborts.push(why),
        tell: (fetched: Fetched) => seen.told.push(fetched),
      };
    },
  } as unknown as Calls;
  const nativeFetch = (async (_url: string, init: RequestInit) => {
    seen.ranges.push(new Headers(init.headers).get("range"));
    if (native instanceof Error) throw native;
    const isAgain = seen.ranges.length > 1 && native.whole !== undefined;
    const { bytes, status, headers } = isAgain ? { status: 200, bytes: WHOLE, ...native.whole } : native;
    const shown = Object.entries({ etag: '"v1"', ...headers }).filter(([, value]) => value !== "");
    return new Response(bytes ?? WHOLE.slice(400), { status: status ?? 206, headers: shown });
  }) as typeof fetch;
  const events: CarriedRequestEvents<Site> = {
    askSite: () => {
      const site = new Site();
      site.head.catch(() => undefined);
      sites.push(site);
      return site;
    },
    native: (site) => seen.events.push(`native ${sites.indexOf(site)}`),
    head: () => seen.events.push("head"),
    bytes: (bytes) => seen.bytes.push(...bytes),
    end: () => seen.events.push("end"),
    error: () => seen.events.push("error"),
  };
  const page = { fetch: nativeFetch, asked, patienceMs: () => PATIENCE_MS, player: () => undefined };
  const carried = new CarriedRequest(calls, page, { url, range, cache: "default" }, events);
  const receive = (...messages: ToPage[]): void => messages.forEach((message) => listener?.message(message));
  const data = (start: number, end: number): ToPage => ({
    type: "data",
    id: 1,
    buffer: WHOLE.slice(start, end).buffer,
  });
  const advance = (ms: number): void => {
    clock.nowMs += ms;
    for (const timer of clock.timers.values())
      if (timer.atMs <= clock.nowMs) [timer.atMs, timer.callback] = [Infinity, (timer.callback(), () => undefined)];
  };
  const lose = (): void => listener?.lost();
  const tick = (): void => listener?.tick(clock.nowMs);
  return { carried, seen, sites, asked, advance, receive, data, lose, tick };
}
