/** Coders: what takes pieces of work from the service. A CPU coder is a pool of threads. */
import { CodecError, type Codec } from "@tributary/protocol";
import type { CoderPool } from "../pool";
import type { Piece, PieceResult } from "./task";

export interface Coder {
  readonly name: string;
  /** How many pieces it takes at once, however long they are. */
  readonly slots: number;
  /** The most pieces that it takes at once if they are short. */
  readonly piecesMax: number;
  /** Shared memory that it writes to faster than to other memory. */
  readonly memory?: Uint8Array | undefined;
  takes(kind: Piece["kind"]): boolean;
  /** Rejects with `CoderLostError` when the coder can do nothing more. Another coder then does the piece. */
  run(piece: Piece, signal?: AbortSignal): Promise<PieceResult>;
  close(): Promise<void>;
}

/** The coder is gone, for example because its device is. The message says why. */
export class CoderLostError extends Error {
  override readonly name = "CoderLostError";
}

/** One piece more than there are threads waits in the pool, so that no thread waits for the event loop. */
const PIECES_AHEAD = 1;

/** Codes on the threads of `pool`, and closes it at the end. */
export function cpuCoder(pool: CoderPool, name = "cpu"): Coder {
  return {
    name,
    slots: Math.min(pool.threads + PIECES_AHEAD, pool.batchesMax),
    piecesMax: pool.batchesMax,
    takes: () => true,
    run: (piece, signal) => {
      const common = signal ? { signal } : {};
      if (piece.kind === "decode") return pool.decode({ ...piece.work, ...common });
      const { encoder, seeds, out } = piece;
      return pool.encode({ encoder, seeds, out, ...common });
    },
    close: () => pool.close(),
  };
}

/** The coder for one kind of work only. */
export function only(kind: Piece["kind"], coder: Coder): Coder {
  return {
    ...coder,
    name: `${coder.name} for ${kind === "decode" ? "decoding" : "encoding"}`,
    takes: (other) => other === kind,
  };
}

/** A GPU copies and computes about so many pieces at once. More wait for it, so that it gets many with one call. */
const GPU_SLOTS = 4;

/**
 * Encodes on the GPU of `pool`. `device` names it, and after its loss it says why it is lost. `memory` is pinned for
 * it.
 */
export function gpuCoder(pool: CoderPool, device: () => string, memory?: Uint8Array): Coder {
  return {
    name: "gpu",
    slots: GPU_SLOTS,
    piecesMax: pool.batchesMax,
    memory,
    takes: (kind) => kind === "encode",
    run: async (piece, signal) => {
      if (piece.kind === "decode") throw new CodecError("kind", 0, 0, "a GPU coder only encodes");
      const { encoder, seeds, out } = piece;
      try {
        return await pool.encode({ encoder, seeds, out, ...(signal ? { signal } : {}) });
      } catch (error) {
        if (error instanceof CodecError && error.what === "deviceLost") throw new CoderLostError(device());
        throw error;
      }
    },
    close: () => pool.close(),
  };
}

/** Stands in for a device where there is none: a CPU coder that does the work of each encoding `times` times. */
export function slowedCoder(pool: CoderPool, times: number, name = "stand-in"): Coder {
  const coder = cpuCoder(pool, name);
  return {
    ...coder,
    takes: (kind) => kind === "encode",
    run: async (piece, signal) => {
      for (let done = 1; done < times; done++) await coder.run(piece, signal);
      return coder.run(piece, signal);
    },
  };
}

/** Rows for a coder of vectors and payloads: an encoder over rows that hold both makes both in one product. */
export function encoderOver(codec: Codec, received: Uint8Array, rowBytes: number): ReturnType<Codec["createEncoder"]> {
  if (rowBytes > ROW_BYTES_MAX) throw new CodecError("rowBytes", rowBytes, ROW_BYTES_MAX);
  const encoder = codec.createEncoder(received.length / rowBytes, rowBytes);
  encoder.setSymbols(0, received);
  return encoder;
}

/** The codec's limit of a symbol. */
const ROW_BYTES_MAX = 65_536;
