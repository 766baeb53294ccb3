/** Times what encoders do: copying the source, and coding. For symbols that are coded for one viewer. */
import { performance } from "node:perf_hooks";
import type { Codec, Encoder } from "@tributary/protocol";

export type EncoderStage = "input" | "coding";

export const withTimedEncoders = (codec: Codec, onStage: (stage: EncoderStage, ms: number) => void): Codec => ({
  ...codec,
  createEncoder: (symbolCount, symbolBytes) => {
    const encoder = codec.createEncoder(symbolCount, symbolBytes);
    const timed = (stage: EncoderStage, act: () => void): void => {
      const startMs = performance.now();
      act();
      onStage(stage, performance.now() - startMs);
    };
    return {
      symbolCount,
      symbolBytes,
      setSymbols: (firstIndex, bytes) => timed("input", () => encoder.setSymbols(firstIndex, bytes)),
      encodeSeeds: (seeds, out) => timed("coding", () => encoder.encodeSeeds(seeds, out)),
      encodeVector: (coefficients, out) => timed("coding", () => encoder.encodeVector(coefficients, out)),
      free: () => encoder.free(),
    } satisfies Encoder;
  },
});
