/**
 * Peers: the other proxies of this proxy's fleet, as Origo knows them, and the bytes that they hold of a chunk. A
 * client's request names peers by their ids. Only Origo says where a proxy is, so nobody can point this one at a
 * stranger.
 */
import { CLIENT_HEADER, formatRange, type ByteRange } from "@tributary/contract";
import type { ChunkRequest } from "../chunk";
import type { ByteSpan } from "./sparse-body";

/** A peer that sends nothing for this long is late: then the origin is asked, before the client asks another proxy. */
const PEER_SILENCE_MS = 300;
/** What Origo said is believed for this long. */
const KNOWN_MS = 30_000;
/** Origo is not asked more often than this. */
const ASK_EVERY_MS = 1000;
const KNOWN_MAX = 1024;

/** The URLs of the proxies with these ids that are live and of this proxy's fleet. Undefined without an Origo. */
export type AskOrigo = (ids: readonly string[]) => Promise<Readonly<Record<string, string>>> | undefined;

/** What a peer is asked for. */
export interface HeldRequest {
  request: ChunkRequest;
  token: string | undefined;
  range: ByteRange | undefined;
  /** Of the body. */
  span: ByteSpan;
  /** The strong validator that the bytes must have. */
  version: string;
}

export class Peers {
  readonly counts = { refused: 0 };
  readonly #known = new Map<string, { url: string | undefined; atMs: number }>();
  readonly #ask: AskOrigo;
  readonly #nowMs: () => number;
  #askedMs = -Infinity;

  constructor(ask: AskOrigo, nowMs: () => number = () => performance.now()) {
    this.#ask = ask;
    this.#nowMs = nowMs;
  }

  /** Learns where these proxies are, so that it is known when one is needed. */
  async learn(ids: readonly string[]): Promise<void> {
    const nowMs = this.#nowMs();
    const unknown = ids.filter((id) => nowMs - (this.#known.get(id)?.atMs ?? -Infinity) > KNOWN_MS);
    if (unknown.length === 0 || nowMs - this.#askedMs < ASK_EVERY_MS) return;
    this.#askedMs = nowMs;
    const urls = (await this.#ask(unknown)?.catch(() => undefined)) ?? {};
    for (const id of unknown) {
      this.#known.delete(id);
      this.#known.set(id, { url: Object.hasOwn(urls, id) ? urls[id] : undefined, atMs: nowMs });
      if (this.#known.size > KNOWN_MAX) this.#known.delete(this.#known.keys().next().value!);
    }
  }

  /**
   * The bytes of the span as they come, from its start, maybe fewer. Ends when the peer is unknown, late, or does not
   * hold them. A peer that is asked asks nobody.
   */
  async *held(id: string, { request, token, range, span, version }: HeldRequest): AsyncGenerator<Uint8Array> {
    const url = this.#known.get(id)?.url;
    if (url === undefined) {
      this.counts.refused++;
      return;
    }
    const query = new URLSearchParams({ url: request.url, part: `${span.start}-${span.end - 1}`, version });
    if (token !== undefined) query.set("token", token);
    if (request.pageOrigin !== undefined) query.set("pageOrigin", request.pageOrigin);
    const headers: Record<string, string> = { [CLIENT_HEADER]: "peer" };
    if (range) headers["range"] = formatRange(range);
    let leftBytes = span.end - span.start;
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), PEER_SILENCE_MS);
    try {
      const { signal } = late;
      const answer = await fetch(`${url}/v1/held?${query}`, { headers, signal, redirect: "error" });
      if (answer.status !== 200 || !answer.body) return void (await answer.body?.cancel());
      for await (const bytes of answer.body as unknown as AsyncIterable<Uint8Array>) {
        timer.refresh();
        const taken = bytes.subarray(0, leftBytes);
        leftBytes -= taken.length;
        yield taken;
        if (leftBytes === 0) return;
      }
    } catch {
      // What is missing is read at the origin.
    } finally {
      clearTimeout(timer);
      late.abort();
    }
  }
}
