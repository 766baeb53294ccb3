/**
 * HttpProofs: checks the blocks of a published object over HTTP (publications.md §7). The plan is known beforehand, and
 * the digests come with proofs from any holder. One holder is asked for them, and one more each time that a holder
 * fails or is slow. A false block or proof convicts the holder that sent it.
 */
import { sha256 } from "@noble/hashes/sha2";
import type { ByteRange, Rejection, ResponseHead } from "@tributary/contract";
import { DIGEST_BYTES, objectId, PIECE_BYTES } from "@tributary/contract/tree";
import { LIMITS, ObjectProofs, statementOf } from "@tributary/protocol";
import type { ActiveDownload } from "../active-download";
import type { ProxyInfo } from "../api";
import { DownloadError, faultOf } from "../errors";
import type { BlockCheck, CheckEvents } from "./block-check";
import { readerOf } from "./proxy-http";

/** After this time without proofs the next holder is asked, too. */
const SLOW_MS = 300;

export class HttpProofs implements BlockCheck {
  /** It is the publisher, for all of the download. */
  readonly voucher = undefined;
  readonly #proofs: ObjectProofs;
  readonly #failed = new Set<number>();
  readonly #controller = new AbortController();
  #asked = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isKnown = false;

  readonly #download: ActiveDownload;
  readonly #proxies: readonly ProxyInfo[];
  readonly #range: ByteRange | undefined;
  readonly #events: CheckEvents;

  constructor(
    download: ActiveDownload,
    proxies: readonly ProxyInfo[],
    range: ByteRange | undefined,
    events: CheckEvents,
  ) {
    this.#download = download;
    this.#proxies = proxies;
    this.#range = range;
    this.#events = events;
    const hash = download.platform.hash ?? sha256;
    this.#proofs = new ObjectProofs(download.object!.object, range, LIMITS.httpBlockBytes, hash);
    queueMicrotask(() => this.#begin());
  }

  stop(): void {
    this.#controller.abort();
    clearTimeout(this.#timer);
  }

  differenceOf(head: ResponseHead): Rejection | undefined {
    const expected = statementOf(this.#head);
    const { status, totalBytes, headers } = head;
    const got = totalBytes === null ? `status ${status}, unknown length` : statementOf({ status, totalBytes, headers });
    if (got === expected) return undefined;
    return { kind: "planMismatch", message: `The proxy's answer differs: got ${got}, expected ${expected}.` };
  }

  isKnown(index: number): boolean {
    return this.#proofs.isKnown(index);
  }

  isTrue(index: number, bytes: Uint8Array): boolean {
    return this.#proofs.isTrue(index, bytes);
  }

  fail(index: number, rejection: Rejection): void {
    if (this.#failed.has(index) || this.#controller.signal.aborted) return;
    this.#failed.add(index);
    this.#events.onProxyFailed(index, rejection);
    if (this.#controller.signal.aborted) return;
    if (this.#failed.size < this.#proxies.length) return void (this.#isKnown || this.#askNext());
    this.stop();
    this.#events.onUndecided(rejection);
  }

  get #head(): ResponseHead & { totalBytes: number } {
    return this.#proofs.head;
  }

  #begin(): void {
    if (this.#controller.signal.aborted) return;
    this.#askNext();
    this.#events.onPlan({ head: this.#head, serverFetchMs: 0, version: objectId(this.#download.object!.object) });
  }

  #askNext(): void {
    clearTimeout(this.#timer);
    if (this.#asked >= this.#proxies.length) return;
    const index = this.#asked++;
    if (this.#failed.has(index)) return this.#askNext();
    this.#timer = setTimeout(() => this.#askNext(), SLOW_MS);
    void this.#ask(index);
  }

  async #ask(index: number): Promise<void> {
    const { signal } = this.#controller;
    try {
      const bytes = await this.#fetch(index, signal);
      if (signal.aborted || this.#isKnown) return;
      // A true proof shows the lies of holders that were asked before, too.
      const liars = this.#proofs.handleDigests(index, 0, bytes, () => undefined);
      this.#isKnown = !liars.has(index);
      if (this.#isKnown) clearTimeout(this.#timer);
      for (const liar of liars) this.fail(liar, this.#proofs.wrong);
      if (this.#isKnown && !signal.aborted) this.#events.onKnown();
    } catch (error) {
      if (!signal.aborted) this.fail(index, faultOf(error));
    }
  }

  async #fetch(index: number, signal: AbortSignal): Promise<Uint8Array> {
    const { object, id } = this.#download.object!;
    const end = this.#range ? this.#range.end : object.bytes - 1;
    const first = Math.floor((this.#range?.start ?? 0) / PIECE_BYTES);
    const wanted = new URLSearchParams({ first: String(first), last: String(Math.floor(end / PIECE_BYTES)) });
    const { token } = this.#download;
    if (token !== undefined) wanted.set("token", token);
    const response = await this.#download.platform.fetch(
      `${this.#proxies[index]!.url}/v1/objects/${id}/proof?${wanted}`,
      { credentials: "omit", cache: "no-store", signal },
    );
    if (response.status !== 200)
      throw new DownloadError("proxyFailed", `The proxy gave no proof: it answered ${response.status}.`);
    const expected = this.#proofs.digestCount * DIGEST_BYTES;
    const bytes = new Uint8Array(expected);
    let at = 0;
    const reader = readerOf(response, signal);
    while (reader) {
      const { done, value } = await reader.read();
      if (done) break;
      this.#download.tally.addBytes(index, value.length);
      if (at + value.length > expected)
        throw new DownloadError("proofWrong", `The proof is longer than ${expected} bytes.`);
      bytes.set(value, at);
      at += value.length;
    }
    if (at < expected && !signal.aborted)
      throw new DownloadError("proofWrong", `The proof is too short: got ${at} bytes, expected ${expected}.`);
    return bytes;
  }
}
