/**
 * Mode `parallel-http`, the paper's uncoded baseline: sends the same request to every proxy and delivers bytes from the
 * answer that is furthest ahead. The first complete answer stops the others. The bytes of all answers count. Each block
 * must have the digest on which the proxies agree (http-agreement.ts), so blocks of several answers can be joined.
 */
import type { ByteRange, Rejection } from "@tributary/contract";
import { LIMITS } from "@tributary/protocol";
import type { ProxyInfo } from "../api";
import { joined } from "@tributary/contract/tree";
import { DownloadError, faultOf } from "../errors";
import type { ModeResult, ActiveDownload } from "../active-download";
import type { StallWatch } from "../stall";
import { linkedAbort } from "./http";
import type { BlockCheck, HttpPlan } from "./block-check";
import { checkFor } from "./check-for";
import { inChunks, noteFailure, watchStall, type HttpTask } from "./http-chunks";
import { fetchThrough, readerOf, type ProxyFailure } from "./proxy-http";

export function parallelHttp(
  download: ActiveDownload,
  proxies: readonly ProxyInfo[],
  onProxyFailed: ProxyFailure,
): Promise<ModeResult> {
  const task = { download, proxies, onProxyFailed };
  return inChunks(download, (range, onPlan) => new ParallelTransfer(task, range, onPlan).execute());
}

class ParallelTransfer {
  readonly #agreement: BlockCheck;
  readonly #watch: StallWatch;
  readonly #abort: ReturnType<typeof linkedAbort>;
  readonly #name: string;
  readonly #lanes: AbortController[];
  #plan: HttpPlan | undefined;
  #deliveredBytes = 0;
  #result: ModeResult | undefined;
  /** Lanes that wait for the plan or for a digest. */
  #waiters: (() => void)[] = [];

  readonly #task: HttpTask;
  readonly #range: ByteRange | undefined;

  constructor(task: HttpTask, range: ByteRange | undefined, onPlan: (plan: HttpPlan) => Rejection | undefined) {
    const { download, proxies } = task;
    this.#task = task;
    this.#range = range;
    this.#name = download.platform.randomUUID();
    this.#lanes = proxies.map(() => new AbortController());
    this.#agreement = checkFor(task, range, this.#name, {
      onPlan: (plan) => {
        const rejection = onPlan(plan);
        if (rejection) return this.#end({ kind: "failed", rejection });
        this.#plan = plan;
        this.#wake();
        if (plan.head.totalBytes === 0) this.#end({ kind: "complete" });
      },
      onKnown: () => this.#wake(),
      onProxyFailed: (index, rejection) => this.#noteFailed(index, rejection),
      onUndecided: (rejection) => this.#end({ kind: "failed", rejection }),
    });
    this.#abort = linkedAbort(download.carrySignal);
    this.#watch = watchStall(task, (rejection) => this.#end({ kind: "failed", rejection }));
  }

  async execute(): Promise<ModeResult> {
    const { signal } = this.#abort.controller;
    signal.addEventListener("abort", () => this.#end({ kind: "aborted" }));
    if (signal.aborted) this.#end({ kind: "aborted" });
    await Promise.all(this.#lanes.map((lane, index) => this.#read(index, lane.signal)));
    return this.#result ?? { kind: "aborted" };
  }

  #end(result: ModeResult): void {
    if (this.#result) return;
    this.#result = result;
    this.#watch.pause();
    this.#abort.unlink();
    this.#agreement.stop();
    this.#task.download.vouch(this.#agreement.voucher);
    for (const lane of this.#lanes) lane.abort();
    this.#wake();
  }

  #noteFailed(index: number, rejection: Rejection): void {
    this.#lanes[index]!.abort();
    this.#wake();
    noteFailure(this.#task, index, rejection);
  }

  #wake(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter();
  }

  async #until(isSo: () => boolean, signal: AbortSignal): Promise<void> {
    while (!isSo() && !signal.aborted) await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  /** Reads one answer from its head to its end. */
  async #read(index: number, signal: AbortSignal): Promise<void> {
    try {
      const wish = { gives: "body", range: this.#range, name: this.#name } as const;
      const { response, head } = await fetchThrough(this.#task.download, this.#task.proxies[index]!, wish, signal);
      await this.#until(() => this.#plan !== undefined, signal);
      const difference = signal.aborted ? undefined : this.#agreement.differenceOf(head);
      if (difference) return this.#agreement.fail(index, difference);
      if (!signal.aborted) await this.#readBody(index, response, this.#plan!.head.totalBytes, signal);
    } catch (error) {
      if (!signal.aborted) this.#agreement.fail(index, faultOf(error));
    }
  }

  async #readBody(index: number, response: Response, totalBytes: number, signal: AbortSignal): Promise<void> {
    const { sink, tally } = this.#task.download;
    const reader = readerOf(response, signal);
    let pieces: Uint8Array[] = [];
    let [blockStart, position] = [0, 0];
    while (reader && position < totalBytes) {
      if (sink.isFull) {
        this.#watch.pause();
        await sink.ready();
      }
      const { done, value } = await reader.read();
      if (signal.aborted) return;
      if (done)
        throw new DownloadError("bodyShort", `The answer ended early: got ${position} bytes, expected ${totalBytes}.`);
      this.#watch.progress();
      tally.addBytes(index, value.length);
      for (let left = value; left.length > 0 && position < totalBytes;) {
        const blockEnd = Math.min(blockStart + LIMITS.httpBlockBytes, totalBytes);
        const piece = left.subarray(0, blockEnd - position);
        left = left.subarray(piece.length);
        position += piece.length;
        pieces.push(piece);
        if (position < blockEnd) continue;
        await this.#offer(blockStart, joined(pieces), signal);
        if (signal.aborted) return;
        [pieces, blockStart] = [[], blockEnd];
      }
    }
  }

  /** Delivers a block if it is the next one and true. */
  async #offer(start: number, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    const index = start / LIMITS.httpBlockBytes;
    await this.#until(() => this.#deliveredBytes > start || this.#agreement.isKnown(index), signal);
    if (signal.aborted || this.#deliveredBytes > start) return;
    if (!this.#agreement.isTrue(index, bytes))
      throw new DownloadError("bodyDiffers", `The proxy's bytes differ from the agreed ones in block ${index}.`);
    this.#deliveredBytes += bytes.length;
    this.#task.download.write(bytes);
    this.#wake();
    if (this.#deliveredBytes === this.#plan!.head.totalBytes) this.#end({ kind: "complete" });
  }
}
