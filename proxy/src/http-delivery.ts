/**
 * A delivery over HTTP: one response of GET /v1/fetch or /v1/digests. It streams a shared chunk while it fills, or a
 * body that cannot be shared straight from the origin. The shaper and the client set the pace. A failure after the head
 * resets the connection, so that a client never takes a part for the whole.
 */
import type { Response } from "express";
import {
  formatOriginTime,
  KEPT_HEADERS,
  ORIGIN_TIME_HEADER,
  RENAMED_PREFIX,
  type Rejection,
} from "@tributary/contract";
import type { ChunkSource, PlanHead } from "@tributary/protocol";
import type { ChunkRequest, ChunkStore, Lease, OriginHead } from "./chunks";
import { EgressError, rejectionOf } from "./egress/error";
import type { OriginResponse } from "./egress/fetch";
import type { Log } from "./log";
import type { Feeder, Shaper } from "./shaper";
import { outletOf, type Outlet, type Yield } from "./outlet";
import { budgetSpent, type Allowance } from "./token";

export interface HttpDeliveryOptions {
  response: Response;
  wanted: ChunkRequest;
  /** What of the chunk the answer gives. */
  gives: Yield;
  chunks: Pick<ChunkStore, "open">;
  shaper: Shaper;
  log: Log;
  /** The sent bytes count against it, and the delivery ends when they are used up. */
  allowance?: Allowance | undefined;
  /** Called once, when the delivery holds nothing. `failure`: why it failed. */
  onEnded: (failure: Rejection | undefined) => void;
  /** Sets the status and the headers of the answer. By default they are those that clients of ours understand. */
  writeHead?: (head: OriginHead) => void;
  /** Answers with an error. Called only before the head was sent. */
  refuse: (rejection: Rejection) => void;
}

/** A client that reads nothing for this time is cut off, because it holds memory that others need. */
const IDLE_MS_MAX = 60_000;

export class HttpDelivery implements Feeder {
  #lease: Lease | undefined;
  #outlet: Outlet | undefined;
  #sentBytes = 0;
  /** The piece of an unshareable body that is being sent, and the call after its last byte. */
  #piece: Uint8Array | undefined;
  #onPieceSent: (() => void) | undefined;
  #waitsForClient = false;
  #ended = false;

  readonly #options: HttpDeliveryOptions;

  constructor(options: HttpDeliveryOptions) {
    this.#options = options;

    const { response, chunks, wanted, gives, shaper } = options;
    response.once("close", () => this.#end(undefined));
    response.setTimeout(IDLE_MS_MAX, () => response.destroy());
    try {
      this.#lease = chunks.open(wanted, {
        onHead: (head, source) => this.#start(head, source),
        onGrowth: () => shaper.wake(this),
        onFailure: (rejection) => this.#fail(rejection),
        ...(gives.kind === "whole" && { onUnshareable: (head, origin) => void this.#stream(head, origin) }),
      });
    } catch (error) {
      if (!(error instanceof EgressError)) throw error;
      this.#fail(error.rejection);
    }
  }

  get clientName(): string {
    return this.#options.wanted.client?.name ?? "";
  }

  feed(budgetBytes: number): number {
    if (this.#ended || this.#waitsForClient) return 0;
    const spent = this.#spent();
    if (spent) {
      this.#fail(spent);
      return 0;
    }
    const bytes = this.#take(budgetBytes);
    if (bytes.length > 0) this.#write(bytes);
    if (this.#outlet && this.#sentBytes === this.#outlet.totalBytes) this.#finish();
    return bytes.length;
  }

  #spent(): Rejection | undefined {
    const { allowance, wanted } = this.#options;
    return allowance && allowance.leftBytes <= 0 ? budgetSpent(allowance) : wanted.client?.bytesRefusal();
  }

  #take(budgetBytes: number): Uint8Array {
    if (this.#outlet) {
      const { availableBytes, turnBytesMax } = this.#outlet;
      const end = Math.min(availableBytes, this.#sentBytes + Math.min(budgetBytes, turnBytesMax));
      return this.#outlet.view(this.#sentBytes, end);
    }
    const bytes = this.#piece?.subarray(0, budgetBytes) ?? new Uint8Array(0);
    this.#piece = this.#piece?.subarray(bytes.length);
    if (this.#piece?.length === 0) {
      this.#piece = undefined;
      this.#onPieceSent?.();
    }
    return bytes;
  }

  #write(bytes: Uint8Array): void {
    const { response, shaper, wanted } = this.#options;
    this.#sentBytes += bytes.length;
    wanted.client?.noteSent(bytes.length);
    this.#noteTaken();
    if (this.#options.allowance) this.#options.allowance.leftBytes -= bytes.length;
    if (response.write(bytes)) return;
    this.#waitsForClient = true;
    response.once("drain", () => {
      this.#waitsForClient = false;
      shaper.wake(this);
    });
  }

  #noteTaken(): void {
    this.#lease?.take(this.#sentBytes, this.#outlet?.wantedBytes(this.#sentBytes) ?? this.#sentBytes);
  }

  #start(head: PlanHead, source: ChunkSource): void {
    const { gives, response } = this.#options;
    this.#outlet = outletOf(source, gives);
    const { totalBytes } = this.#outlet;
    if (gives.kind !== "whole") response.setHeader(`${RENAMED_PREFIX}content-length`, source.totalBytes);
    this.#writeHead({ ...head, totalBytes });
    if (totalBytes === 0) this.#finish();
    else this.#noteTaken();
  }

  #writeHead(head: OriginHead): void {
    const { response, writeHead } = this.#options;
    const { status, headers, totalBytes, serverFetchMs } = head;
    if (writeHead) return writeHead(head);
    response.status(status);
    for (const [name, value] of Object.entries(headers))
      response.setHeader(KEPT_HEADERS.includes(name) ? name : RENAMED_PREFIX + name, value);
    if (totalBytes !== null && status !== 204 && status !== 304) response.setHeader("Content-Length", totalBytes);
    response.setHeader(ORIGIN_TIME_HEADER, formatOriginTime(serverFetchMs));
    response.flushHeaders();
  }

  async #stream(head: OriginHead, origin: OriginResponse): Promise<void> {
    try {
      this.#writeHead(head);
      for await (const piece of origin.body) {
        if (this.#ended) return;
        this.#piece = piece;
        this.#options.shaper.wake(this);
        await new Promise<void>((resolve) => (this.#onPieceSent = resolve));
      }
      this.#finish();
    } catch (error) {
      this.#fail(rejectionOf(error, this.#options.log));
    }
  }

  #finish(): void {
    if (this.#ended) return;
    this.#options.response.end();
    this.#end(undefined);
  }

  #fail(rejection: Rejection): void {
    if (this.#ended) return;
    const { response, refuse } = this.#options;
    if (response.headersSent) response.destroy();
    else refuse(rejection);
    this.#end(rejection);
  }

  #end(failure: Rejection | undefined): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#lease?.close();
    this.#options.shaper.remove(this);
    this.#onPieceSent?.();
    this.#options.onEnded(failure);
  }
}
