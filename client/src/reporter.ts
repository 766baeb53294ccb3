/**
 * Sends download records, error reports and traces to Origo, in batches and in the background. A download never waits
 * for it. If Origo does not answer or has no room, the reports wait in a bounded queue and go out later. Origo counts a
 * repeated id once.
 */
import type { Trace } from "@tributary/contract/query-schema";
import type { Conviction } from "@tributary/contract/conviction";
import type { DownloadRecord, ErrorReport } from "@tributary/contract/schema";
import { quietTimeout } from "./listen";
import type { Platform } from "./platform";

/** At most this many records wait for Origo, and this many error reports. The oldest ones are dropped first. */
const QUEUE_MAX = 1000;
const BATCH_MAX = 50;
/** Few traces wait, because traces are long. */
const TRACE_QUEUE_MAX = 16;
const TRACE_BATCH_MAX = 1;
/** Evidence against proxies has many bytes, and more of it proves nothing more. */
const CONVICTION_QUEUE_MAX = 4;
/** Reports that come within this time are sent together. */
const DELAY_MS = 250;
/** The pause before the first retry. It doubles with each retry, up to RETRY_MS_MAX. */
const RETRY_MS = 1000;
const RETRY_MS_MAX = 30_000;
const TIMEOUT_MS = 3000;

interface Queue {
  readonly path: string;
  /** Undefined: an item is the whole body. */
  readonly field?: "records" | "errors" | "traces";
  readonly items: unknown[];
  readonly itemsMax: number;
  readonly batchMax: number;
  /** True after Origo refused a batch. The items are then sent one by one. */
  isSingle: boolean;
}

const BOUNDS = { itemsMax: QUEUE_MAX, batchMax: BATCH_MAX, isSingle: false };

/** What an error led to, and the id of the proxy that lied. */
export interface ErrorContext {
  ledTo?: "fallback" | undefined;
  accused?: string | undefined;
}

export class Reporter {
  readonly #records: Queue = { path: "/v1/records", field: "records", items: [], ...BOUNDS };
  readonly #errors: Queue = { path: "/v1/errors", field: "errors", items: [], ...BOUNDS };
  readonly #traces: Queue = {
    path: "/v1/traces",
    field: "traces",
    items: [],
    itemsMax: TRACE_QUEUE_MAX,
    batchMax: TRACE_BATCH_MAX,
    isSingle: false,
  };
  readonly #convictions: Queue = {
    path: "/v1/convictions",
    items: [],
    itemsMax: CONVICTION_QUEUE_MAX,
    batchMax: 1,
    isSingle: false,
  };
  readonly #queues = [this.#records, this.#errors, this.#traces, this.#convictions];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sending: Promise<void> | undefined;
  #failures = 0;
  /** How long Origo asked to wait before the next attempt. */
  #askedMs = 0;
  #closed = false;

  readonly #origoUrl: string;
  readonly #platform: Platform;

  constructor(origoUrl: string, platform: Platform) {
    this.#origoUrl = origoUrl;
    this.#platform = platform;
  }

  record(record: DownloadRecord): void {
    this.#add(this.#records, record);
  }

  error(report: ErrorReport): void {
    this.#add(this.#errors, report);
  }

  trace(trace: Trace): void {
    this.#add(this.#traces, trace);
  }

  conviction(conviction: Conviction): void {
    this.#add(this.#convictions, conviction);
  }

  get waiting(): number {
    return this.#queues.reduce((sum, { items }) => sum + items.length, 0);
  }

  /** Sends the waiting reports for at most `withinMs`, and stops when Origo does not take them. Drops the others. */
  async close(withinMs: number): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#sending;
    const untilMs = this.#platform.now() + withinMs;
    this.#failures = 0;
    while (this.waiting > 0 && this.#failures === 0 && this.#platform.now() < untilMs)
      await this.#flush(Math.ceil(untilMs - this.#platform.now()));
    for (const { items } of this.#queues) items.length = 0;
  }

  #add(queue: Queue, item: unknown): void {
    if (this.#closed) return;
    queue.items.push(item);
    if (queue.items.length > queue.itemsMax) queue.items.shift();
    this.#timer ??= setTimeout(() => this.#run(), DELAY_MS);
  }

  #run(): void {
    this.#sending = this.#flush(TIMEOUT_MS).finally(() => {
      this.#sending = undefined;
      this.#timer = undefined;
      if (this.#closed || this.waiting === 0) return;
      const backoffMs = this.#failures === 0 ? 0 : RETRY_MS * 2 ** (this.#failures - 1);
      const delayMs = Math.min(RETRY_MS_MAX, Math.max(backoffMs, this.#askedMs));
      this.#askedMs = 0;
      this.#timer = quietTimeout(() => this.#run(), delayMs);
    });
  }

  async #flush(withinMs: number): Promise<void> {
    for (const queue of this.#queues) {
      if (await this.#post(queue, withinMs)) continue;
      this.#failures++;
      return;
    }
    this.#failures = 0;
  }

  /**
   * Posts one batch. Returns false when Origo does not take it. Origo would refuse (4xx) the same batch again, so
   * its items are sent one by one, and only the item at fault is dropped.
   */
  async #post(queue: Queue, withinMs: number): Promise<boolean> {
    const batch = queue.items.slice(0, queue.isSingle ? 1 : queue.batchMax);
    if (batch.length === 0) return true;
    try {
      const response = await this.#platform.fetch(`${this.#origoUrl}${queue.path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(queue.field === undefined ? batch[0] : { [queue.field]: batch }),
        credentials: "omit",
        signal: AbortSignal.timeout(withinMs),
      });
      await response.body?.cancel();
      // An Origo that wants no more evidence takes the other reports.
      if (response.status >= 500 || (response.status === 429 && queue.field !== undefined)) {
        this.#askedMs = 1000 * (Number(response.headers.get("retry-after")) || 0);
        return false;
      }
      queue.isSingle = !response.ok;
      if (!response.ok && batch.length > 1) return true;
    } catch {
      return false;
    }
    const done = new Set(batch);
    queue.items.splice(0, queue.items.length, ...queue.items.filter((item) => !done.has(item)));
    return true;
  }
}
