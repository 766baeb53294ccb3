/**
 * Objects report: tells Origo which objects the library has: all of them after each hello, then what changes. One part
 * after the other; if one fails, it begins anew. Origo answers which objects no publication has (publications.md §6).
 */
import { PUBLICATION_LIMITS, type ObjectsAck, type ObjectsReport } from "@tributary/contract/publication-schema";
import type { Log } from "../log";
import type { Library } from "./library";

export interface ReporterOptions {
  library: Library;
  /** Resolves with Origo's answer. It rejects when no answer comes. */
  send: (report: ObjectsReport) => Promise<ObjectsAck>;
  log: Log;
  /** Between two parts. Origo cuts a connection that sends more than 100 packets in ten seconds. */
  gapMs?: number;
  /** Until the list is sent anew after a failure. */
  retryMs?: number;
}

const GAP_MS = 200;
const RETRY_MS = 15_000;

export class ObjectsReporter {
  /** What Origo does not know yet: whether the object is in the library. */
  #news = new Map<string, boolean>();
  #isFirst = false;
  #isConnected = false;
  #timer: NodeJS.Timeout | undefined;
  #isSending = false;

  readonly #options: ReporterOptions;

  constructor(options: ReporterOptions) {
    this.#options = options;
    options.library.onChange = (change, id) => {
      this.#news.set(id, change === "added");
      this.#sendSoon(0);
    };
  }

  /** Origo has taken the hello. */
  begin(): void {
    this.#isConnected = true;
    this.#beginAnew();
    this.#sendSoon(0);
  }

  /** The connection is gone. */
  pause(): void {
    this.#isConnected = false;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #beginAnew(): void {
    this.#isFirst = true;
    this.#news = new Map(this.#options.library.ids.map((id) => [id, true]));
  }

  #sendSoon(ms: number): void {
    const hasNews = this.#isFirst || this.#news.size > 0;
    if (!this.#isConnected || this.#isSending || this.#timer !== undefined || !hasNews) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#sendPart();
    }, ms);
  }

  async #sendPart(): Promise<void> {
    const { library, send, log, gapMs = GAP_MS, retryMs = RETRY_MS } = this.#options;
    const part = [...this.#news].slice(0, PUBLICATION_LIMITS.objectsPerReport);
    const idsThat = (isThere: boolean) => part.filter(([, each]) => each === isThere).map(([id]) => id);
    const report: ObjectsReport = { isFirst: this.#isFirst, added: idsThat(true), removed: idsThat(false) };
    for (const [id] of part) this.#news.delete(id);
    this.#isFirst = false;
    this.#isSending = true;
    let nextMs = gapMs;
    try {
      const answer = await send(report);
      if ("error" in answer) throw new Error(answer.error.message);
      library.pin(report.added, true);
      library.pin(answer.unwanted, false);
    } catch (error) {
      log("objectsRefused", { reason: (error as Error).message });
      this.#beginAnew();
      nextMs = retryMs;
    }
    this.#isSending = false;
    this.#sendSoon(nextMs);
  }
}
