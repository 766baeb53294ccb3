/** Tasks of the coder service, their checks, and the pieces that coders take of them. It runs nothing. */
import { CodecError, type Encoder } from "@tributary/protocol";
import type { DecodeResult, DecodeWork } from "../pool";

interface Scheduling {
  /** When the result is needed, by the service's clock. A task that is near it comes before others. */
  deadlineMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** Makes one coded symbol of the encoder's generation for each seed. */
export interface EncodeTask extends Scheduling {
  kind: "encode";
  encoder: Encoder;
  seeds: Uint32Array;
  /** `seeds.length * symbolBytes` bytes. Use memory of `SharedBuffers`, so that it is written in place. */
  out: Uint8Array;
}

/**
 * Makes one coded symbol for each seed out of received ones, as `Recoder.recode` does. The received symbols are
 * linearly independent and in the order of their arrival.
 */
export interface RecodeTask extends Scheduling {
  kind: "recode";
  /** The generation's symbols. */
  symbolCount: number;
  symbolBytes: number;
  /** For each received symbol its vector of `symbolCount` bytes and its payload of `symbolBytes` bytes. */
  received: Uint8Array;
  seeds: Uint32Array;
  /** For each seed the vector and the payload, as in `received`. */
  out: Uint8Array;
}

/** Adds received symbols to a decoder, and reads source symbols if there is an `out`. */
export type DecodeTask = Scheduling & { kind: "decode"; work: DecodeWork };

export type CoderTask = EncodeTask | RecodeTask | DecodeTask;

/** What one coder does at once: some rows of an encoding, or a whole decoding. */
export type Piece =
  | { readonly kind: "encode"; readonly encoder: Encoder; readonly seeds: Uint32Array; readonly out: Uint8Array }
  | { readonly kind: "decode"; readonly work: DecodeWork };

export type PieceResult = Uint8Array | DecodeResult;

/** The codec's limit of a generation. */
const SYMBOL_COUNT_MAX = 256;

export function checkRows({ seeds, out }: Pick<EncodeTask, "seeds" | "out">, rowBytes: number): void {
  if (seeds.length === 0) throw new CodecError("seeds", 0, 1);
  if (out.length !== seeds.length * rowBytes) throw new CodecError("out", out.length, seeds.length * rowBytes);
}

/** The number of received symbols. Throws for a shape that no generation has. */
export function receivedCount({ symbolCount, symbolBytes, received }: RecodeTask): number {
  for (const [what, got] of Object.entries({ symbolCount, symbolBytes })) {
    if (!Number.isInteger(got) || got < 1) throw new CodecError(what, got, 1);
  }
  if (symbolCount > SYMBOL_COUNT_MAX) throw new CodecError("symbolCount", symbolCount, SYMBOL_COUNT_MAX);
  const rowBytes = symbolCount + symbolBytes;
  const count = Math.ceil(received.length / rowBytes);
  if (count === 0) throw new CodecError("received", 0, rowBytes);
  if (received.length !== count * rowBytes) throw new CodecError("received", received.length, count * rowBytes);
  if (count > symbolCount) throw new CodecError("received", count, symbolCount);
  return count;
}
