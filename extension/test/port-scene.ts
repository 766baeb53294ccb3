/** A page port with a page, a transport and downloads that a test makes up. */
import type { ToPage, PortLike } from "../src/shared/messages";
import { BUILT_IN, type Settings } from "../src/shared/settings";
import { Allowance } from "../src/transport/allowance";
import { Detours } from "../src/transport/detours";
import { Pace } from "../src/transport/pace";
import { PagePort } from "../src/transport/page-port";
import type { CarriedDownload, PagePortHost } from "../src/transport/port-host";
import type { Trust } from "../src/transport/trust";

export const PAGE = "https://page.example";
export const OPEN = { "content-type": "video/mp4", "access-control-allow-origin": "*" };

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
  /** Without `hello` and the announcements that proxies are asked. */
  get answers(): ToPage[] {
    return this.heard.slice(1).filter(({ type }) => type !== "wait");
  }
  types(): string[] {
    return this.answers.map(({ type }) => type);
  }
}

export interface Given {
  status?: number;
  headers?: Record<string, string>;
  bytes?: number;
  headError?: Error;
  bodyError?: Error;
  /** The address is one of a published file. */
  isPublished?: boolean;
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

/** Carries everything, as if all had been compared. */
export const CARRYING = {
  decide: (): string => "carry",
  isMet: (): boolean => false,
  isKnown: (): boolean => true,
  forget: (): void => undefined,
};

export function make(given: Given = {}, settings: Partial<Settings> = {}, trust = CARRYING as unknown as Trust) {
  const port = new Port();
  const asked: { url: string; options: Parameters<PagePortHost["get"]>[1] }[] = [];
  const aborted: unknown[] = [];
  const reported: string[] = [];
  const closed: object[] = [];
  const clock = { nowMs: 0 };
  const warming = { end: (): void => undefined };
  const detours = new Detours(() => 0);
  const pace = new Pace();
  const pagePort: PagePort = new PagePort(port, PAGE, {
    settings: () => ({ ...BUILT_IN, ...settings }),
    get: (url, options) => {
      asked.push({ url, options });
      return download(given, aborted);
    },
    mayAskSite: (origin, url) => {
      reported.push(`may ${origin} ask ${url}`);
      return Promise.resolve(true);
    },
    isPublished: () => given.isPublished ?? false,
    detours,
    trust,
    pace,
    allowance: new Allowance(),
    proxyIds: () => [],
    activeCount: () => pagePort.activeCount,
    reportWrong: (url) => void reported.push(url),
    noteProxyFailure: (host, pageOrigin, kind, detail) => {
      reported.push(`${kind}: ${detail}`);
      detours.noteFailure(host, pageOrigin, kind, detail, clock.nowMs);
      detours.noteFallback(kind, detail);
    },
    changed: () => undefined,
    warm: () => {
      reported.push("warm");
      return new Promise((resolve) => (warming.end = resolve));
    },
    closed: (ended) => void closed.push(ended),
    nowMs: () => clock.nowMs,
  });
  return { port, asked, aborted, reported, closed, clock, warming, detours, pace, pagePort };
}

export const COMPARE = {
  type: "compare",
  id: 1,
  url: "https://media.example/a.mp4",
  range: null,
  head: { status: 200, url: "https://media.example/a.mp4", headers: { "content-type": "video/mp4" } },
  headMs: 20,
};
export const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));
export const get = (id = 1, url = "https://media.example/a.mp4", range: unknown = null): object => ({
  type: "get",
  id,
  url,
  range,
  patienceMs: 4000,
  targets: ["https://cdn.example", "https://other.example", PAGE],
});
