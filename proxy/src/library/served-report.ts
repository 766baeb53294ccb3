/**
 * Served report: tells Origo how many bytes of each object were served. One report at a time: it is sent again, with
 * the same id, until Origo has it, so Origo counts each byte once (publications.md §6). A proxy that is killed loses
 * what it has not reported.
 */
import { randomUUID } from "node:crypto";
import { PUBLICATION_LIMITS, type ServedAck, type ServedReport } from "@tributary/contract/publication-schema";
import type { Log } from "../log";
import type { Library } from "./library";

export interface ServedReporterOptions {
  library: Pick<Library, "takeServed">;
  /** Resolves with Origo's answer. It rejects when no answer comes. */
  send: (report: ServedReport) => Promise<ServedAck>;
  log: Log;
  /** Between two reports. */
  intervalMs?: number;
  /** Before the next report, if this one was full. Origo cuts a connection that sends more than 100 packets in 10 s. */
  gapMs?: number;
}

const INTERVAL_MS = 5000;
const GAP_MS = 500;

export class ServedReporter {
  /** Origo may or may not have it. */
  #unanswered: ServedReport | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isConnected = false;
  #isSending = false;

  readonly #options: ServedReporterOptions;

  constructor(options: ServedReporterOptions) {
    this.#options = options;
  }

  /** Origo has taken the hello. */
  begin(): void {
    this.#isConnected = true;
    this.#reportIn(0);
  }

  /** The connection is gone. */
  pause(): void {
    this.#isConnected = false;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #reportIn(ms: number): void {
    if (!this.#isConnected || this.#isSending || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#report();
    }, ms);
  }

  async #report(): Promise<void> {
    const { library, send, log, intervalMs = INTERVAL_MS, gapMs = GAP_MS } = this.#options;
    const objectsMax = PUBLICATION_LIMITS.objectsPerReport;
    const report = this.#unanswered ?? { id: randomUUID(), served: library.takeServed(objectsMax) };
    if (report.served.length === 0) return this.#reportIn(intervalMs);
    this.#unanswered = report;
    this.#isSending = true;
    let nextMs = intervalMs;
    try {
      const answer = await send(report);
      if ("error" in answer) throw new Error(answer.error.message);
      this.#unanswered = undefined;
      if (report.served.length === objectsMax) nextMs = gapMs;
    } catch (error) {
      log("servedRefused", { reason: (error as Error).message });
    }
    this.#isSending = false;
    this.#reportIn(nextMs);
  }
}
