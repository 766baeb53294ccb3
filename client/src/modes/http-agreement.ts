/**
 * HttpAgreement: what the proxies of a chunk say about it over HTTP, and what of that is believed (protocol.md §9.8).
 * Each proxy is asked for the digests of the body's blocks. The plan and each block are decided by the rule for
 * datagrams. A single proxy is believed, and its bytes must have the digests that it announced.
 */
import { sha256 } from "@noble/hashes/sha2";
import { isSameVersion, strongValidator, type ByteRange, type Rejection, type ResponseHead } from "@tributary/contract";
import {
  DigestAgreement,
  isDoubtful,
  isOutvoted,
  LIMITS,
  Patience,
  statementOf,
  statementOfRejection,
  undecided,
  verdictOf,
  votersOf,
  wordsOf,
} from "@tributary/protocol";
import type { Voucher } from "@tributary/contract/record-fields";
import type { ActiveDownload } from "../active-download";
import type { ProxyInfo } from "../api";
import { DownloadError, faultOf } from "../errors";
import type { BlockCheck, CheckEvents, HttpPlan } from "./block-check";
import { operatorsOf, voucherOf } from "../operators";
import { fetchThrough, readerOf } from "./proxy-http";

type KnownHead = HttpPlan["head"];

interface Speaker {
  head: KnownHead | undefined;
  serverFetchMs: number;
  failure: Rejection | undefined;
}

export class HttpAgreement implements BlockCheck {
  readonly #name: string;
  readonly #speakers: Speaker[];
  readonly #digests: DigestAgreement;
  readonly #voters: readonly number[];
  readonly #patience = new Patience();
  readonly #controller = new AbortController();
  #plan: HttpPlan | undefined;
  /** The bytes of the blocks up to this one are here. */
  #wantedIndex = -1;
  #timer: ReturnType<typeof setTimeout> | undefined;

  readonly #download: ActiveDownload;
  readonly #proxies: readonly ProxyInfo[];
  readonly #range: ByteRange | undefined;
  readonly #events: CheckEvents;

  /** `name` is that of the wishes for the body. */
  constructor(
    download: ActiveDownload,
    proxies: readonly ProxyInfo[],
    range: ByteRange | undefined,
    name: string,
    events: CheckEvents,
  ) {
    this.#download = download;
    this.#proxies = proxies;
    this.#range = range;
    this.#name = name;
    this.#events = events;
    this.#speakers = proxies.map(() => ({ head: undefined, serverFetchMs: 0, failure: undefined }));
    const operators = operatorsOf(proxies);
    this.#digests = new DigestAgreement(proxies.length, operators);
    this.#voters = votersOf(proxies.length, operators);
    proxies.forEach((_, index) => void this.#hear(index));
  }

  stop(): void {
    this.#controller.abort();
    clearTimeout(this.#timer);
  }

  /** Why an answer with this head cannot be of the agreed body. */
  differenceOf(head: ResponseHead): Rejection | undefined {
    const expected = statementOf(this.#plan!.head);
    const got = hasLength(head) ? statementOf(head) : `status ${head.status}, unknown length`;
    if (got === expected) return undefined;
    return { kind: "planMismatch", message: `The proxy's answer differs: got ${got}, expected ${expected}.` };
  }

  /** The caller has the bytes of this block. */
  isKnown(index: number): boolean {
    if (index < this.#digests.decidedCount) return true;
    if (index > this.#wantedIndex) {
      this.#wantedIndex = index;
      queueMicrotask(() => this.#settle());
    }
    return false;
  }

  isTrue(index: number, bytes: Uint8Array): boolean {
    return this.#digests.isTrue(index, (this.#download.platform.hash ?? sha256)(bytes));
  }

  /** Who vouches for what is decided. Undefined while nothing is. */
  get voucher(): Voucher | undefined {
    return this.#digests.decidedCount === 0 ? undefined : voucherOf(this.#digests);
  }

  /** Nothing that this proxy says counts any more. */
  fail(index: number, rejection: Rejection): void {
    const speaker = this.#speakers[index]!;
    if (speaker.failure || this.#controller.signal.aborted) return;
    speaker.failure = rejection;
    if (rejection.kind === "bodyDiffers") this.#digests.handleConviction(index);
    this.#events.onProxyFailed(index, rejection);
    this.#settle();
  }

  async #hear(index: number): Promise<void> {
    const speaker = this.#speakers[index]!;
    const { signal } = this.#controller;
    try {
      const wish = { gives: "digests", range: this.#range, name: this.#name } as const;
      const { response, head, serverFetchMs } = await fetchThrough(this.#download, this.#proxies[index]!, wish, signal);
      if (signal.aborted) return;
      if (!hasLength(head)) throw new DownloadError("lengthUnknown", "The proxy does not tell the body's length.");
      Object.assign(speaker, { head, serverFetchMs });
      const difference = this.#plan && this.differenceOf(head);
      if (difference) return this.fail(index, difference);
      this.#settle();
      await this.#readDigests(index, response, blockCountOf(head));
    } catch (error) {
      if (!signal.aborted) this.fail(index, faultOf(error));
    }
  }

  async #readDigests(index: number, response: Response, blockCount: number): Promise<void> {
    const reader = readerOf(response, this.#controller.signal);
    let rest = new Uint8Array(0);
    while (reader && !this.#controller.signal.aborted && !this.#speakers[index]!.failure) {
      const { done, value } = await reader.read();
      if (done) break;
      this.#download.tally.addBytes(index, value.length);
      const bytes = new Uint8Array(rest.length + value.length);
      bytes.set(rest);
      bytes.set(value, rest.length);
      const end = bytes.length - (bytes.length % LIMITS.digestBytes);
      rest = bytes.subarray(end);
      const left = blockCount - this.#digests.countOf(index);
      const digests = digestsIn(bytes.subarray(0, Math.min(end, left * LIMITS.digestBytes)));
      this.#digests.handleDigests(index, this.#digests.countOf(index), digests);
      this.#settle();
    }
    if (this.#controller.signal.aborted || this.#digests.countOf(index) >= blockCount) return;
    const got = this.#digests.countOf(index);
    throw new DownloadError("bodyShort", `The proxy sent too few digests: got ${got}, expected ${blockCount}.`);
  }

  #settle(): void {
    if (this.#controller.signal.aborted) return;
    clearTimeout(this.#timer);
    if (!this.#plan) this.#settlePlan();
    const knownBefore = this.#digests.decidedCount;
    const areAllFailed = this.#plan && this.#speakers.every(({ failure }) => failure);
    if (this.#plan && isOutvoted(this.#wordsOn(statementOf(this.#plan.head))))
      return this.#giveUp(undecided("planMismatch", "plans"));
    if (areAllFailed) return this.#giveUp(this.#speakers[0]!.failure!);
    if (this.#plan) this.#settleBlocks(blockCountOf(this.#plan.head));
    if (this.#digests.decidedCount > knownBefore) this.#events.onKnown();
    const { dueMs } = this.#patience;
    if (dueMs === undefined || this.#controller.signal.aborted) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#settle(), Math.max(1, dueMs - this.#nowMs()));
  }

  #settlePlan(): void {
    const said = ({ head, failure }: Speaker) => (failure ? statementOfRejection(failure) : head && statementOf(head));
    const able = this.#speakers.filter((speaker) => !speaker.failure || said(speaker) !== undefined);
    if (able.length === 0) return this.#giveUp(this.#speakers[0]!.failure!);
    const voters = able.map((speaker) => this.#voters[this.#speakers.indexOf(speaker)]!);
    const verdict = verdictOf(able.map(said), this.#patience.mayWait(this.#nowMs()), voters);
    const agreeing = able.filter((each) => verdict.kind === "decided" && said(each) === verdict.statement);
    // An empty body has only an end.
    const isOpen = verdict.kind === "open" || (agreeing[0]?.head?.totalBytes === 0 && !this.#mayEnd(agreeing[0].head));
    this.#patience.note(isOpen, this.#nowMs());
    if (verdict.kind === "split") return this.#giveUp(undecided("planMismatch", "plans"));
    if (isOpen || !agreeing[0]) return;
    const { head, serverFetchMs, failure } = agreeing[0];
    if (failure) return this.#giveUp(failure);
    const isOne = agreeing.every((other) => isSameVersion(head!, other.head!));
    this.#plan = { head: head!, serverFetchMs, version: isOne ? strongValidator(head!) : undefined };
    this.#events.onPlan(this.#plan);
    this.#speakers.forEach((speaker, index) => {
      const difference = speaker.head && this.differenceOf(speaker.head);
      if (difference) this.fail(index, difference);
    });
  }

  /** The end waits for the proxies that may still contradict the length: protocol.md §5.2. */
  #mayEnd(head: KnownHead): boolean {
    return !isDoubtful(this.#wordsOn(statementOf(head))) || !this.#patience.mayWait(this.#nowMs());
  }

  /** What the operators say about the plan. Failed proxies count if they spoke. */
  #wordsOn(statement: string): ReturnType<typeof wordsOf> {
    const words = this.#speakers.map(({ head, failure }) => {
      if (head && statementOf(head) === statement) return "agrees";
      if (head || (failure && statementOfRejection(failure) !== undefined)) return "opposes";
      return failure ? undefined : "silent";
    });
    return wordsOf(words, this.#voters);
  }

  #settleBlocks(blockCount: number): void {
    for (;;) {
      for (const [liar, at] of this.#digests.takeDissenters()) {
        this.fail(liar, {
          kind: "bodyDiffers",
          message: `The proxy's answer differs from the others' in block ${at}.`,
        });
      }
      if (this.#controller.signal.aborted) return;
      const { outvotedAt } = this.#digests;
      if (outvotedAt !== undefined) return this.#giveUp(undecided("bodyDiffers", `digests of block ${outvotedAt}`));
      const index = this.#digests.decidedCount;
      if (index === blockCount) return this.#patience.note(false, this.#nowMs());
      const isAble = (speaker: number) => !this.#speakers[speaker]!.failure;
      const mayDecide = index + 1 < blockCount || this.#mayEnd(this.#plan!.head);
      const verdict = mayDecide ? this.#digests.decideNext(isAble, this.#patience.mayWait(this.#nowMs())) : "open";
      this.#patience.note(verdict === "open" && index <= this.#wantedIndex, this.#nowMs());
      if (verdict === "open" || verdict === "unsaid") return;
      if (verdict === "split") return this.#giveUp(undecided("bodyDiffers", `digests of block ${index}`));
    }
  }

  #giveUp(rejection: Rejection): void {
    this.stop();
    this.#events.onUndecided(rejection);
  }

  #nowMs(): number {
    return this.#download.elapsedMs();
  }
}

const hasLength = (head: ResponseHead): head is KnownHead => head.totalBytes !== null;
const blockCountOf = ({ totalBytes }: KnownHead): number => Math.ceil(totalBytes / LIMITS.httpBlockBytes);

function digestsIn(bytes: Uint8Array): Uint8Array[] {
  const { digestBytes } = LIMITS;
  return Array.from({ length: bytes.length / digestBytes }, (_, index) =>
    bytes.slice(index * digestBytes, (index + 1) * digestBytes),
  );
}
