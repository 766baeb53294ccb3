/**
 * Sends download records and error reports to Origo, in batches and in the background. A download never waits for
 * it; what cannot be sent is kept, up to a bound, and sent later. Origo counts a repeated id once.
 */
import type { DownloadRecord, ErrorReport } from "@tributary/origo/schema";
import type { Platform } from "./platform";

const QUEUE_MAX = 1000;
const BATCH_MAX = 50;
const FIRST_DELAY_MS = 250;
const RETRY_MS = 1000;
const RETRY_MS_MAX = 30_000;
const POST_TIMEOUT_MS = 3000;

interface Queue {
  readonly path: string;
  readonly field: "records" | "errors";
  readonly items: unknown[];
}

export class Reporter {
  /** Items thrown away because the queue was full: the oldest go first. */
  dropped = 0;
  private readonly records: Queue = { path: "/v1/records", field: "records", items: [] };
  private readonly errors: Queue = { path: "/v1/errors", field: "errors", items: [] };
  private timer: ReturnType<typeof setTimeout> | undefined;
  private sending: Promise<void> | undefined;
  private failures = 0;
  private batchMax = BATCH_MAX;
  private closed = false;

  constructor(
    private readonly origoUrl: string,
    private readonly platform: Platform,
  ) {}

  record(record: DownloadRecord): void {
    this.add(this.records, record);
  }

  error(report: ErrorReport): void {
    this.add(this.errors, report);
  }

  get waiting(): number {
    return this.records.items.length + this.errors.items.length;
  }

  /** One last try to send what waits, for at most `withinMs`; then nothing is kept. */
  async close(withinMs: number): Promise<void> {
    this.closed = true;
    clearTimeout(this.timer);
    await this.sending;
    if (this.waiting > 0) await this.flush(withinMs);
    this.records.items.length = 0;
    this.errors.items.length = 0;
  }

  private add(queue: Queue, item: unknown): void {
    if (this.closed) return;
    queue.items.push(item);
    if (queue.items.length > QUEUE_MAX) {
      queue.items.shift();
      this.dropped++;
    }
    this.timer ??= setTimeout(() => this.run(), FIRST_DELAY_MS);
  }

  private run(): void {
    this.sending = this.flush(POST_TIMEOUT_MS).finally(() => {
      this.sending = undefined;
      this.timer = undefined;
      if (this.closed || this.waiting === 0) return;
      const delayMs = this.failures === 0 ? 0 : Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** (this.failures - 1));
      this.timer = setTimeout(() => this.run(), delayMs);
    });
  }

  private async flush(withinMs: number): Promise<void> {
    const sent = (await this.post(this.records, withinMs)) && (await this.post(this.errors, withinMs));
    this.failures = sent ? 0 : this.failures + 1;
  }

  /**
   * False when Origo is not there. What it refuses (4xx) would be refused again: a refused batch is sent item by item,
   * so that only the item at fault is dropped.
   */
  private async post(queue: Queue, withinMs: number): Promise<boolean> {
    const batch = queue.items.slice(0, this.batchMax);
    if (batch.length === 0) return true;
    try {
      const response = await this.platform.fetch(`${this.origoUrl}${queue.path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ [queue.field]: batch }),
        credentials: "omit",
        signal: AbortSignal.timeout(withinMs),
      });
      await response.body?.cancel();
      if (response.status >= 500 || response.status === 429) return false;
      this.batchMax = response.ok ? BATCH_MAX : 1;
      if (!response.ok && batch.length > 1) return true;
      if (!response.ok) this.dropped++;
    } catch {
      return false;
    }
    const done = new Set(batch);
    queue.items.splice(0, queue.items.length, ...queue.items.filter((item) => !done.has(item)));
    return true;
  }
}
