/**
 * Mode `split-http`: fetches byte ranges over persistent HTTP from all proxies at once. The protocol's SplitHttp
 * decides which proxy gets which range. This file does the requests, the clock, the slow reader and the abort.
 */
import type { ByteRange, ResponseHead, Rejection } from "@tributary/contract";
import { SplitHttp, type SplitHttpCommand, type SplitHttpEvent } from "@tributary/protocol";
import type { ProxyInfo } from "../api";
import { DownloadError, faultOf } from "../errors";
import type { ModeResult, ActiveDownload } from "../active-download";
import { StallWatch } from "../stall";
import { linkedAbort, statusFault, wholeHead } from "./http";
import { fetchThrough, type ProxyFailure } from "./proxy-http";

export async function splitHttp(
  download: ActiveDownload,
  proxies: readonly ProxyInfo[],
  onProxyFailed: ProxyFailure,
): Promise<ModeResult> {
  const transfer = new SplitTransfer(download, proxies, onProxyFailed);
  return transfer.execute();
}

/** An answer that is being received. */
interface Answer {
  readonly controller: AbortController;
  readonly ended: Promise<void>;
  head: ResponseHead | undefined;
  serverFetchMs: number;
}

class SplitTransfer {
  readonly #split: SplitHttp;
  readonly #answers = new Map<number, Answer>();
  readonly #watch: StallWatch;
  readonly #abort: ReturnType<typeof linkedAbort>;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #result: ModeResult | undefined;
  #resolve!: () => void;
  #waitsForReader = false;

  readonly #download: ActiveDownload;
  readonly #proxies: readonly ProxyInfo[];
  readonly #onProxyFailed: ProxyFailure;

  constructor(download: ActiveDownload, proxies: readonly ProxyInfo[], onProxyFailed: ProxyFailure) {
    this.#download = download;
    this.#proxies = proxies;
    this.#onProxyFailed = onProxyFailed;

    const { firstByteMs, stallMs, chunkBytesMax } = download.settings;
    this.#split = new SplitHttp({
      proxyCount: proxies.length,
      range: download.request.range,
      nowMs: this.#nowMs(),
      aheadBytesMax: chunkBytesMax,
    });
    this.#abort = linkedAbort(download.signal);
    this.#watch = new StallWatch(firstByteMs, stallMs, (ms) => {
      this.#end({
        kind: "failed",
        rejection: { kind: "stalled", message: `Nothing came from ${proxies.length} proxies for ${ms} ms.` },
      });
    });
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
    return this.#download.elapsedMs();
  }

  #end(result: ModeResult): void {
    if (this.#result) return;
    this.#result = result;
    clearTimeout(this.#timer);
    this.#watch.pause();
    this.#abort.unlink();
    this.#split.stop();
    for (const { controller } of this.#answers.values()) controller.abort();
    this.#resolve();
  }

  /** Handles all events and commands, and sets the timer for the next time. */
  #pump(): void {
    for (let event = this.#split.pollEvent(); event && !this.#result; event = this.#split.pollEvent())
      this.#take(event);
    for (let command = this.#split.pollCommand(); command && !this.#result; command = this.#split.pollCommand())
      this.#do(command);
    if (this.#download.sink.isFull) void this.#awaitReader();
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
      case "head":
        return this.#setHead(event.askId, event.whole);
      case "bytes":
        return this.#download.sink.write(event.bytes);
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
    const { askId, proxyIndex, range } = command;
    const controller = new AbortController();
    const ended = this.#read(askId, proxyIndex, range, controller.signal).finally(() => this.#answers.delete(askId));
    this.#answers.set(askId, { controller, ended, head: undefined, serverFetchMs: 0 });
  }

  #setHead(askId: number, whole: ByteRange | undefined): void {
    const { head, serverFetchMs } = this.#answers.get(askId)!;
    const fault = statusFault(this.#download.request.allowFallback, head!);
    if (fault) return this.#end({ kind: "failed", rejection: fault });
    const asked = this.#download.request.range ? 206 : 200;
    this.#download.setHead(whole ? wholeHead(head!, whole, asked) : head!, serverFetchMs);
  }

  #noteFailed(proxyIndex: number, rejection: Rejection): void {
    this.#download.tally.fail(proxyIndex, rejection);
    this.#onProxyFailed(this.#proxies[proxyIndex]!, rejection);
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
    await this.#download.sink.ready();
    this.#waitsForReader = false;
    if (this.#result) return;
    this.#progress();
    this.#split.handleRoom(true, this.#nowMs());
    this.#pump();
  }

  /** Reads one answer from its head to its end. */
  async #read(askId: number, proxyIndex: number, range: ByteRange | undefined, signal: AbortSignal): Promise<void> {
    try {
      const { response, head, serverFetchMs } = await fetchThrough(
        this.#download,
        this.#proxies[proxyIndex]!,
        range,
        signal,
      );
      Object.assign(this.#answers.get(askId)!, { head, serverFetchMs });
      this.#progress();
      const fault = head.status === 416 ? undefined : statusFault(this.#download.request.allowFallback, head);
      if (fault) throw DownloadError.of(fault);
      this.#split.handleHead(askId, head, this.#nowMs());
      this.#pump();
      await this.#readBody(askId, proxyIndex, response, signal);
    } catch (error) {
      if (signal.aborted) return;
      this.#split.handleFailure(askId, faultOf(error), this.#nowMs());
      this.#pump();
    }
  }

  async #readBody(askId: number, proxyIndex: number, response: Response, signal: AbortSignal): Promise<void> {
    const reader = response.body?.getReader();
    while (reader && !signal.aborted) {
      if (this.#download.sink.isFull) await this.#download.sink.ready();
      const { done, value } = await reader.read();
      if (done) break;
      this.#progress();
      this.#download.tally.addBytes(proxyIndex, value.length);
      this.#split.handleBytes(askId, value, this.#nowMs());
      this.#pump();
    }
    if (signal.aborted) return;
    this.#split.handleEnd(askId, this.#nowMs());
    this.#pump();
  }
}
