/**
 * Part fetch: parts of one resource from its origin. The first answer says how long the resource is and which version
 * it has. Later answers must be of the same version, since parts of two versions must not be joined (RFC 9110 §15.3.7).
 */
import {
  formatContentRange,
  isSameVersion,
  parseContentRange,
  strongValidator,
  type ByteRange,
} from "@tributary/contract";
import { LIMITS, type PlanHead } from "@tributary/protocol";
import { headOf, type ChunkRequest, type Origins } from "../chunk";
import { AnswerPolicy } from "../cache-policy";
import { egressError } from "../egress/error";
import type { OriginResponse } from "../egress/fetch";
import type { ByteSpan } from "./sparse-body";

/** A part of the body as it comes. `body` must be read, or `cancel` called. */
export interface Part {
  readonly span: ByteSpan;
  readonly response: OriginResponse;
}

/**
 * Why a chunk is not shared. `noParts`: the origin gives no ranges, no length or no strong validator. `notThis`: the
 * body is too long for one chunk, or not everybody may have it.
 */
export type Unshareable = "noParts" | "notThis";

export interface Opened {
  /** The answer to the whole request, as if the origin had given it at once. */
  head: PlanHead;
  policy: AnswerPolicy;
  /** Undefined if the body ends before the part that was asked for. */
  part: Part | undefined;
}

export class PartFetch {
  readonly #origins: Origins;
  readonly #request: ChunkRequest;
  readonly #signal: AbortSignal;
  readonly #range: ByteRange | undefined;
  /** Where the body begins in the resource. */
  readonly #base: number;
  #first: { head: PlanHead; resource: number } | undefined;

  /** `range`: that of the request, if it has one. */
  constructor(origins: Origins, request: ChunkRequest, range: ByteRange | undefined, signal: AbortSignal) {
    this.#origins = origins;
    this.#request = request;
    this.#signal = signal;
    this.#range = range;
    this.#base = range?.start ?? 0;
  }

  /** Asks for bytes `start` to before `end` of the body, the first part of all. */
  async open(span: ByteSpan): Promise<Opened | Unshareable> {
    const sentMs = Date.now();
    let response = await this.#ask(span);
    const isAfterEnd = response.status === 416;
    if (isAfterEnd) {
      response.cancel();
      response = await this.#ask({ start: 0, end: 1 });
    }
    const opened = this.#describe(response, sentMs);
    if (typeof opened === "string") {
      response.cancel();
      return opened;
    }
    if (isAfterEnd) response.cancel();
    return { ...opened, part: isAfterEnd ? undefined : this.#partOf(response) };
  }

  /** Asks for a further part. Throws an `EgressError` if it is of another version. */
  async next(span: ByteSpan): Promise<Part> {
    const response = await this.#ask(span);
    const told = response.status === 206 ? parseContentRange(response.headers["content-range"]) : undefined;
    if (told && told.resourceBytes === this.#first!.resource && isSameVersion(this.#first!.head, response))
      return this.#partOf(response);
    response.cancel();
    throw egressError("bodyDiffers", "The origin's answer has changed while proxies read parts of it.");
  }

  #ask({ start, end }: ByteSpan): Promise<OriginResponse> {
    const { url, client, pageOrigin } = this.#request;
    const range = { start: this.#base + start, end: this.#base + end - 1 };
    return this.#origins.fetch(url, range, this.#signal, client, { pageOrigin });
  }

  #partOf(response: OriginResponse): Part {
    const { start, end } = parseContentRange(response.headers["content-range"])!;
    return { response, span: { start: start - this.#base, end: end + 1 - this.#base } };
  }

  #describe(response: OriginResponse, sentMs: number): Omit<Opened, "part"> | Unshareable {
    const told = response.status === 206 ? parseContentRange(response.headers["content-range"]) : undefined;
    if (told?.resourceBytes === undefined || told.resourceBytes === null || strongValidator(response) === undefined)
      return "noParts";
    const end = Math.min((this.#range?.end ?? Infinity) + 1, told.resourceBytes);
    const totalBytes = end - this.#base;
    const policy = new AnswerPolicy(response, sentMs, Date.now());
    if (totalBytes < 0 || totalBytes > LIMITS.chunkBytesMax || !policy.isShareable) return "notThis";
    const { headers, serverFetchMs } = headOf(response);
    const others = { ...headers };
    delete others["content-range"];
    const contentRange = formatContentRange({ start: this.#base, end: end - 1 }, told.resourceBytes);
    const head: PlanHead = this.#range
      ? { status: 206, headers: { ...others, "content-range": contentRange }, totalBytes, serverFetchMs }
      : { status: 200, headers: others, totalBytes, serverFetchMs };
    this.#first = { head, resource: told.resourceBytes };
    return { head, policy };
  }
}
