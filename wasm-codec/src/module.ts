/** The exports of codec.wasm, as src/binding.cc defines them. Addresses and lengths are 32-bit numbers. */
export interface CodecModule {
  readonly memory: WebAssembly.Memory;
  start(): void;
  statusAddress(): number;
  engineNameAddress(): number;
  allocate(bytes: number): number;
  reserve(bytes: number): number;
  release(address: number): void;
  coefficients(seed: number, out: number, count: number): void;

  encoderNew(symbolCount: number, symbolBytes: number): number;
  encoderFree(encoder: number): void;
  encoderSetSymbols(encoder: number, firstIndex: number, bytes: number, byteCount: number): number;
  encoderEncodeSeeds(encoder: number, seeds: number, seedCount: number, out: number, outBytes: number): number;
  encoderEncodeVector(encoder: number, coefficients: number, coefficientCount: number, out: number, outBytes: number): number;

  decoderNew(symbolCount: number, symbolBytes: number): number;
  decoderFree(decoder: number): void;
  decoderRank(decoder: number): number;
  decoderAddSystematic(decoder: number, index: number, payload: number, payloadBytes: number): number;
  decoderAddSeeded(decoder: number, seed: number, payload: number, payloadBytes: number): number;
  decoderAddVector(decoder: number, coefficients: number, coefficientCount: number, payload: number, payloadBytes: number): number;
  decoderIsDecoded(decoder: number, index: number): number;
  decoderSymbol(decoder: number, index: number): number;
  decoderRead(decoder: number, firstIndex: number, count: number, out: number, outBytes: number): number;

  recoderNew(symbolCount: number, symbolBytes: number): number;
  recoderFree(recoder: number): void;
  recoderRank(recoder: number): number;
  recoderAddSystematic(recoder: number, index: number, payload: number, payloadBytes: number): number;
  recoderAddSeeded(recoder: number, seed: number, payload: number, payloadBytes: number): number;
  recoderAddVector(recoder: number, coefficients: number, coefficientCount: number, payload: number, payloadBytes: number): number;
  recoderRecode(recoder: number, seed: number, outCoefficients: number, coefficientCount: number, outPayload: number, payloadBytes: number): number;

  repairEncoderNew(symbolCount: number, symbolBytes: number): number;
  repairEncoderFree(encoder: number): void;
  repairEncoderSetSymbols(encoder: number, firstIndex: number, bytes: number, byteCount: number): number;
  repairEncoderEncodeSeeds(encoder: number, seeds: number, seedCount: number, out: number, outBytes: number): number;

  repairDecoderNew(symbolCount: number, symbolBytes: number): number;
  repairDecoderFree(decoder: number): void;
  repairDecoderMissingCount(decoder: number): number;
  repairDecoderAddSource(decoder: number, index: number, payload: number, payloadBytes: number): number;
  repairDecoderAddSeeded(decoder: number, seed: number, payload: number, payloadBytes: number): number;
  repairDecoderIsDecoded(decoder: number, index: number): number;
  repairDecoderSymbol(decoder: number, index: number): number;
}
