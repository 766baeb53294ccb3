/** What a stand-in proxy gives of a body over HTTP. */
import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import { LIMITS, type ChunkSource } from "@tributary/protocol";

export type Given = "digests" | "body" | number[];

export function givenOf(body: Uint8Array, gives: Given): Buffer {
  if (gives === "body") return Buffer.from(body);
  if (gives !== "digests") return Buffer.from(body.subarray(gives[0], gives[1]! + 1));
  const blocks = Array.from({ length: Math.ceil(body.length / LIMITS.httpBlockBytes) }, (_, index) =>
    body.subarray(index * LIMITS.httpBlockBytes, (index + 1) * LIMITS.httpBlockBytes),
  );
  return Buffer.concat(
    blocks.map((block) => createHash("sha256").update(block).digest().subarray(0, LIMITS.digestBytes)),
  );
}

export async function trickle(response: ServerResponse, body: Uint8Array, everyMs: number): Promise<void> {
  for (let at = 0; at < body.length && !response.destroyed; at += 16_384) {
    response.write(body.subarray(at, at + 16_384));
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  response.end();
}

/** The body with other bytes from this one on. */
export function liedFrom(body: Uint8Array, from: number | undefined): Uint8Array {
  return from === undefined ? body : body.map((byte, at) => (at < from ? byte : byte ^ 1));
}

export class GrowingSource implements ChunkSource {
  availableBytes: number;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;

    this.availableBytes = bytes.length;
  }
  get totalBytes(): number {
    return this.#bytes.length;
  }
  view(start: number, end: number): Uint8Array {
    return this.#bytes.subarray(start, end);
  }
  digest(start: number, end: number): Uint8Array {
    return createHash("sha256").update(this.view(start, end)).digest().subarray(0, LIMITS.digestBytes);
  }
}
