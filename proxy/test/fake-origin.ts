/** What the tests of the store share: an origin whose answers a test gives step by step, and readers. */
import type { CacheMode, RangeRequest, Rejection } from "@tributary/contract";
import type { ChunkSource, PlanHead } from "@tributary/protocol";
import { ChunkStore, type ChunkLimits, type ChunkListener } from "../src/chunks";
import { Clients } from "../src/clients";
import { egressError } from "../src/egress/error";
import type { FetchDetails, OriginResponse } from "../src/egress/fetch";
import type { LogFields } from "../src/log";

/** An origin whose answers the test gives step by step. */
export class FakeOrigin {
  fetches: FakeFetch[] = [];
  vet = (url: string): URL => {
    if (url.includes("refused")) throw egressError("egressRefused", "no");
    return new URL(url.replace(/#.*/, ""));
  };
  fetch = (
    _url: string,
    _range: unknown,
    signal: AbortSignal,
    _client?: unknown,
    details?: FetchDetails,
  ): Promise<OriginResponse> =>
    new Promise((resolve, reject) => {
      const made = new FakeFetch(resolve, reject, details?.conditions, details?.pageOrigin);
      signal.addEventListener("abort", () => made.stop());
      this.fetches.push(made);
    });
}

export class FakeFetch {
  aborted = false;
  cancelled = false;
  #pieces: (Uint8Array | Error | null)[] = [];
  #wake = (): void => undefined;
  readonly #resolve: (response: OriginResponse) => void;

  constructor(
    resolve: (response: OriginResponse) => void,
    readonly reject: (error: Error) => void,
    readonly conditions: Record<string, string> | undefined,
    readonly pageOrigin: string | undefined,
  ) {
    this.#resolve = resolve;
  }

  head(totalBytes: number | null, headers: Record<string, string> = {}, status = 200): Promise<void> {
    const cancel = () => (this.cancelled = true);
    this.#resolve({ status, headers, totalBytes, serverFetchMs: 12, body: this.#body(), cancel });
    return settled();
  }
  async push(piece: string | Error | null): Promise<void> {
    this.#pieces.push(typeof piece === "string" ? Buffer.from(piece) : piece);
    this.#wake();
    await settled();
  }
  stop(): void {
    this.aborted = true;
    const error = egressError("aborted", "given up");
    this.reject(error);
    void this.push(error);
  }
  async *#body(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const next = this.#pieces.shift();
      if (next === null) return;
      if (next instanceof Error) throw next;
      if (next) yield next;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

export class Reader implements ChunkListener {
  head: PlanHead | undefined;
  source: ChunkSource | undefined;
  growths = 0;
  failure: Rejection | undefined;
  onHead = (head: PlanHead, source: ChunkSource): void => void ((this.head = head), (this.source = source));
  onGrowth = (): void => void this.growths++;
  onFailure = (rejection: Rejection): void => void (this.failure = rejection);
  get text(): string {
    return Buffer.from(this.source!.view(0, this.source!.availableBytes)).toString();
  }
}

export const settled = () => new Promise<void>((resolve) => setTimeout(resolve, 2));
export const clients = new Clients(() => ({ addressBytes: 1e9, addressOffers: 1, controlPerMille: 1000 }));
export const SEGMENT = 256 * 1024;
export const URL_A = "http://o.test/a";
export const FRESH = { "cache-control": "max-age=60" };
export const LIMITS = {
  cacheBytes: 2 ** 20,
  originFetchesMax: 1000,
  pinnedBytes: 2 ** 28,
  cacheKeepMs: Infinity,
  readAheadBytes: 2 ** 28,
  unreadBytes: 2 ** 28,
};

const stores: ChunkStore[] = [];
afterEach(() => {
  for (const store of stores.splice(0)) store.close();
});

export function setup(limits: Partial<ChunkLimits> = {}) {
  const origin = new FakeOrigin();
  const clock = { ms: 0 };
  const logged: string[] = [];
  const log = (event: string, fields?: LogFields) => void logged.push(`${event} ${JSON.stringify(fields)}`);
  const store = new ChunkStore({ egress: origin, log, limits: { ...LIMITS, ...limits }, nowMs: () => clock.ms });
  stores.push(store);
  const open = (url = URL_A, range?: RangeRequest, cache?: CacheMode, pageOrigin?: string) => {
    const reader = new Reader();
    return { reader, lease: store.open({ url, range, cache, pageOrigin }, reader) };
  };
  return { origin, clock, store, open, logged };
}

/** Fetches a chunk to its end and closes the lease. */
export async function fetched(
  at: ReturnType<typeof setup>,
  url: string,
  text: string,
  headers: Record<string, string> = FRESH,
): Promise<void> {
  const { lease } = at.open(url);
  const fetch = at.origin.fetches.at(-1)!;
  await fetch.head(text.length, headers);
  await fetch.push(text);
  await fetch.push(null);
  lease.close();
}
