/** The exports of a module, as src/binding.cc defines them. Addresses and lengths are 32-bit numbers. */
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
  encoderEncodeSeeds(encoder: number, seeds: number, seedCount: number, out: number): number;
  encoderEncodeVector(encoder: number, coefficients: number, out: number): number;

  /** `collector` is the address of a decoder or a recoder. */
  collectorAddSystematic(collector: number, index: number, payload: number): number;
  collectorAddSeeded(collector: number, seed: number, payload: number): number;
  collectorAddVector(collector: number, coefficients: number, payload: number): number;

  decoderNew(symbolCount: number, symbolBytes: number): number;
  decoderFree(decoder: number): void;
  decoderRank(decoder: number): number;
  decoderIsDecoded(decoder: number, index: number): number;
  decoderRead(decoder: number, firstIndex: number, count: number, out: number): number;

  recoderNew(symbolCount: number, symbolBytes: number): number;
  recoderFree(recoder: number): void;
  recoderRank(recoder: number): number;
  recoderRecode(recoder: number, seed: number, outCoefficients: number, outPayload: number): number;

  repairEncoderNew(symbolCount: number, symbolBytes: number): number;
  repairEncoderFree(encoder: number): void;
  repairEncoderSetSymbols(encoder: number, firstIndex: number, bytes: number, byteCount: number): number;
  repairEncoderEncodeSeeds(encoder: number, seeds: number, seedCount: number, out: number): number;

  repairDecoderNew(symbolCount: number, symbolBytes: number): number;
  repairDecoderFree(decoder: number): void;
  repairDecoderMissingCount(decoder: number): number;
  repairDecoderAddSource(decoder: number, index: number, payload: number): number;
  repairDecoderAddSeeded(decoder: number, seed: number, payload: number): number;
  repairDecoderIsDecoded(decoder: number, index: number): number;
  repairDecoderRead(decoder: number, firstIndex: number, count: number, out: number): number;
}
