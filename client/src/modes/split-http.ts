/**
 * Mode `split-http`: fetches parts of each chunk over persistent HTTP from all proxies. The protocol's SplitHttp
 * decides which proxy gets which part, and HttpAgreement which bytes are believed. This file does the requests, the
 * clock, the slow reader and the abort.
 */
import type { ByteRange, Rejection } from "@tributary/contract";
import { SplitHttp, type SplitHttpCommand, type SplitHttpEvent } from "@tributary/protocol";
import type { ProxyInfo } from "../api";
import { faultOf } from "../errors";
import type { ModeResult, ActiveDownload } from "../active-download";
import type { StallWatch } from "../stall";
import { linkedAbort } from "./http";
import type { BlockCheck, HttpPlan } from "./block-check";
import { checkFor } from "./check-for";
import { inChunks, noteFailure, watchStall, type HttpTask } from "./http-chunks";
import { fetchThrough, readerOf, type ProxyFailure } from "./proxy-http";

export function splitHttp(
  download: ActiveDownload,
  proxies: readonly ProxyInfo[],
  onProxyFailed: ProxyFailure,
): Promise<ModeResult> {
  const task = { download, proxies, onProxyFailed };
  return inChunks(download, (range, onPlan) => new SplitTransfer(task, range, onPlan).execute());
}

/** An answer that is being received. */
interface Answer {
  readonly controller: AbortController;
  readonly ended: Promise<void>;
}

class SplitTransfer {
  readonly #split: SplitHttp;
  readonly #agreement: BlockCheck;
  readonly #answers = new Map<number, Answer>();
  readonly #watch: StallWatch;
  readonly #abort: ReturnType<typeof linkedAbort>;
  readonly #name: string;
  /** Resolves when the plan is known. Answers wait for that. */
  readonly #planned: Promise<void>;
  #resolvePlanned!: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #result: ModeResult | undefined;
  #resolve!: () => void;
  #waitsForReader = false;

  readonly #task: HttpTask;
  readonly #range: ByteRange | undefined;
  readonly #onPlan: (plan: HttpPlan) => Rejection | undefined;

  constructor(task: HttpTask, range: ByteRange | undefined, onPlan: (plan: HttpPlan) => Rejection | undefined) {
    const { download, proxies } = task;
    this.#task = task;
    this.#range = range;
    this.#onPlan = onPlan;
    this.#name = download.platform.randomUUID();
    this.#planned = new Promise((resolve) => (this.#resolvePlanned = resolve));

    this.#agreement = checkFor(task, range, this.#name, {
      onPlan: (plan) => this.#handlePlan(plan),
      onKnown: () => this.#handle(() => this.#split.handleKnown(this.#nowMs())),
      onProxyFailed: (proxyIndex, rejection) =>
        this.#handle(() => this.#split.handleProxyFailed(proxyIndex, rejection, this.#nowMs())),
      onUndecided: (rejection) => this.#end({ kind: "failed", rejection }),
    });
    this.#split = new SplitHttp({
      proxyCount: proxies.length,
      nowMs: this.#nowMs(),
      aheadBytesMax: download.settings.chunkBytesMax,
      check: this.#agreement,
    });
    this.#abort = linkedAbort(download.carrySignal);
    this.#watch = watchStall(task, (rejection) => this.#end({ kind: "failed", rejection }));
  }

  async execute(): Promise<ModeResult> {
    const over = new Promise<void>((resolve) => (this.#resolve = resolve));
    this.#abort.controller.signal.addEventListener("abort", () => this.#end({ kind: "aborted" }));
    if (this.#abort.controller.signal.aborted) this.#end({ kind: "aborted" });
    this.#pump();
    await over;
    await Promise.all([...this.#answers.values()].map(({ ended }) => ended));
    return this.#result!;
  }

  #nowMs(): number {
    return this.#task.download.elapsedMs();
  }

  #end(result: ModeResult): void {
    if (this.#result) return;
    this.#result = result;
    clearTimeout(this.#timer);
    this.#watch.pause();
    this.#abort.unlink();
    this.#agreement.stop();
    this.#task.download.vouch(this.#agreement.voucher);
    this.#split.stop();
    for (const { controller } of this.#answers.values()) controller.abort();
    this.#resolvePlanned();
    this.#resolve();
  }

  #handle(change: () => void): void {
    if (this.#result) return;
    change();
    this.#pump();
  }

  #handlePlan(plan: HttpPlan): void {
    const rejection = this.#onPlan(plan);
    if (rejection) return this.#end({ kind: "failed", rejection });
    this.#progress();
    this.#handle(() => this.#split.handleTotal(plan.head.totalBytes, this.#nowMs()));
    this.#resolvePlanned();
  }

  /** Handles all events and commands, and sets the timer for the next time. */
  #pump(): void {
    for (let event = this.#split.pollEvent(); event && !this.#result; event = this.#split.pollEvent())
      this.#take(event);
    for (let command = this.#split.pollCommand(); command && !this.#result; command = this.#split.pollCommand())
      this.#do(command);
    if (this.#task.download.sink.isFull) void this.#awaitReader();
    clearTimeout(this.#timer);
    const atMs = this.#split.pollTimeout();
    if (this.#result || atMs === undefined) return;
    this.#timer = setTimeout(
      () => {
        this.#split.handleTimeout(this.#nowMs());
        this.#pump();
      },
      Math.max(1, atMs - this.#nowMs()),
    );
  }

  #take(event: SplitHttpEvent): void {
    switch (event.kind) {
      case "bytes":
        return this.#task.download.write(event.bytes);
      case "proxyFailed":
        return this.#noteFailed(event.proxyIndex, event.rejection);
      case "complete":
        return this.#end({ kind: "complete" });
      case "failed":
        return this.#end({ kind: "failed", rejection: event.rejection });
    }
  }

  #do(command: SplitHttpCommand): void {
    if (command.kind === "cancel") {
      this.#answers.get(command.askId)?.controller.abort();
      return;
    }
    const { askId, proxyIndex, part } = command;
    const controller = new AbortController();
    const ended = this.#read(askId, proxyIndex, part, controller.signal).finally(() => this.#answers.delete(askId));
    this.#answers.set(askId, { controller, ended });
  }

  #noteFailed(proxyIndex: number, rejection: Rejection): void {
    this.#agreement.fail(proxyIndex, rejection);
    noteFailure(this.#task, proxyIndex, rejection);
  }

  /** Silence does not count while the reader is behind. */
  #progress(): void {
    if (!this.#result && !this.#waitsForReader) this.#watch.progress();
  }

  /** The client asks for nothing new while the reader is behind, and received bytes wait. */
  async #awaitReader(): Promise<void> {
    if (this.#waitsForReader) return;
    this.#waitsForReader = true;
    this.#watch.pause();
    this.#split.handleRoom(false, this.#nowMs());
    await this.#task.download.sink.ready();
    this.#waitsForReader = false;
    if (this.#result) return;
    this.#progress();
    this.#split.handleRoom(true, this.#nowMs());
    this.#pump();
  }

  /** Reads one answer from its head to its end. */
  async #read(askId: number, proxyIndex: number, part: ByteRange, signal: AbortSignal): Promise<void> {
    try {
      const wish = { gives: part, range: this.#range, name: this.#name };
      const { response, head } = await fetchThrough(this.#task.download, this.#task.proxies[proxyIndex]!, wish, signal);
      this.#progress();
      await this.#planned;
      if (signal.aborted) return;
      const difference = this.#agreement.differenceOf(head);
      if (difference) return this.#handle(() => this.#split.handleProxyFailed(proxyIndex, difference, this.#nowMs()));
      this.#handle(() => this.#split.handleHead(askId, this.#nowMs()));
      await this.#readBody(askId, proxyIndex, response, signal);
    } catch (error) {
      if (!signal.aborted) this.#handle(() => this.#split.handleFailure(askId, faultOf(error), this.#nowMs()));
    }
  }

  async #readBody(askId: number, proxyIndex: number, response: Response, signal: AbortSignal): Promise<void> {
    const reader = readerOf(response, signal);
    while (reader && !signal.aborted) {
      if (this.#task.download.sink.isFull) await this.#task.download.sink.ready();
      const { done, value } = await reader.read();
      if (done) break;
      this.#progress();
      this.#task.download.tally.addBytes(proxyIndex, value.length);
      this.#handle(() => this.#split.handleBytes(askId, value, this.#nowMs()));
    }
    if (!signal.aborted) this.#handle(() => this.#split.handleEnd(askId, this.#nowMs()));
  }
}
