/**
 * The codec core as WebAssembly exports: flat functions on addresses and integers, for src/index.ts alone.
 * Functions that can fail return a negative number then; what was wrong stands in the status record at `statusAddress`.
 * The caller checks that addresses and lengths lie in this memory; all else is checked by the core.
 */
#include <cstdlib>
#include <cstring>
#include <new>

#include "gf256.h"
#include "tributary/codec.h"

#define EXPORT(name) extern "C" __attribute__((export_name(#name), used))

/** Never called; the C++ library's own would bring its formatted output along, a third of the module. */
extern "C" void __cxa_pure_virtual() { __builtin_trap(); }

namespace {

using namespace tributary;

constexpr int32_t kFailed = -1;

/** Read by index.ts, byte by byte as it stands here. */
struct StatusRecord {
  double got;
  double limit;
  const char* what;
  uint32_t outOfMemory;
} lastStatus;

const Engine& engine() { return *availableEngines().front(); }

int32_t resultOf(const Status& status, int32_t value = 0) {
  if (status.ok()) return value;
  lastStatus = {static_cast<double>(status.got), static_cast<double>(status.limit), status.what,
                status.code == Status::Code::kOutOfMemory};
  return kFailed;
}

template <class Coder>
void destroy(Coder* coder) {
  coder->~Coder();
  free(coder);
}

/** A new coder, or nullptr with the status record set. */
template <class Coder>
Coder* create(uint32_t symbolCount, uint32_t symbolBytes) {
  void* memory = malloc(sizeof(Coder));
  if (memory == nullptr) {
    resultOf({Status::Code::kOutOfMemory, "memoryBytes", sizeof(Coder), 0});
    return nullptr;
  }
  Coder* coder = new (memory) Coder;
  if (resultOf(coder->initialize(engine(), symbolCount, symbolBytes)) == 0) return coder;
  destroy(coder);
  return nullptr;
}

}  // namespace

/** Called once, before all else. */
EXPORT(start) void start() { gf256::makeTables(); }
EXPORT(statusAddress) const StatusRecord* statusAddress() { return &lastStatus; }
EXPORT(engineNameAddress) const char* engineNameAddress() { return engineName(engine()); }
EXPORT(allocate) void* allocate(size_t bytes) { return malloc(bytes); }
/** Sees to it that `bytes` can be allocated without growing the memory; 0 when they cannot be had. */
EXPORT(reserve) int32_t reserve(size_t bytes) {
  void* pool = malloc(bytes);
  if (pool == nullptr) return 0;
  *static_cast<volatile uint8_t*>(pool) = 0;  // or the compiler sees that nobody needs it
  free(pool);
  return 1;
}
EXPORT(release) void release(void* memory) { free(memory); }

EXPORT(coefficients) void coefficients(uint32_t seed, uint8_t* out, size_t count) {
  coefficientsOf(seed, {out, count});
}

EXPORT(encoderNew) Encoder* encoderNew(uint32_t symbolCount, uint32_t symbolBytes) {
  return create<Encoder>(symbolCount, symbolBytes);
}
EXPORT(encoderFree) void encoderFree(Encoder* encoder) { destroy(encoder); }
EXPORT(encoderSetSymbols)
int32_t encoderSetSymbols(Encoder* encoder, uint32_t firstIndex, const uint8_t* bytes, size_t byteCount) {
  return resultOf(encoder->setSymbols(firstIndex, {bytes, byteCount}));
}
EXPORT(encoderEncodeSeeds)
int32_t encoderEncodeSeeds(const Encoder* encoder, const uint32_t* seeds, size_t seedCount, uint8_t* out,
                           size_t outBytes) {
  return resultOf(encoder->encodeSeeds({seeds, seedCount}, {out, outBytes}));
}
EXPORT(encoderEncodeVector)
int32_t encoderEncodeVector(const Encoder* encoder, const uint8_t* coefficients, size_t coefficientCount, uint8_t* out,
                            size_t outBytes) {
  return resultOf(encoder->encodeVector({coefficients, coefficientCount}, {out, outBytes}));
}

EXPORT(decoderNew) Decoder* decoderNew(uint32_t symbolCount, uint32_t symbolBytes) {
  return create<Decoder>(symbolCount, symbolBytes);
}
EXPORT(decoderFree) void decoderFree(Decoder* decoder) { destroy(decoder); }
EXPORT(decoderRank) uint32_t decoderRank(const Decoder* decoder) { return decoder->rank(); }
EXPORT(decoderAddSystematic)
int32_t decoderAddSystematic(Decoder* decoder, uint32_t index, const uint8_t* payload, size_t payloadBytes) {
  bool innovative = false;
  const Status status = decoder->addSystematic(index, {payload, payloadBytes}, innovative);
  return resultOf(status, innovative);
}
EXPORT(decoderAddSeeded)
int32_t decoderAddSeeded(Decoder* decoder, uint32_t seed, const uint8_t* payload, size_t payloadBytes) {
  bool innovative = false;
  const Status status = decoder->addSeeded(seed, {payload, payloadBytes}, innovative);
  return resultOf(status, innovative);
}
EXPORT(decoderAddVector)
int32_t decoderAddVector(Decoder* decoder, const uint8_t* coefficients, size_t coefficientCount,
                         const uint8_t* payload, size_t payloadBytes) {
  bool innovative = false;
  const Status status = decoder->addVector({coefficients, coefficientCount}, {payload, payloadBytes}, innovative);
  return resultOf(status, innovative);
}
EXPORT(decoderIsDecoded) int32_t decoderIsDecoded(const Decoder* decoder, uint32_t index) {
  bool decoded = false;
  const Status status = decoder->isDecoded(index, decoded);
  return resultOf(status, decoded);
}
/** Where a decoded symbol lies until the decoder is called again; 0 when it is not decoded. */
EXPORT(decoderSymbol) const uint8_t* decoderSymbol(const Decoder* decoder, uint32_t index) {
  const uint8_t* bytes = nullptr;
  resultOf(decoder->symbol(index, bytes));
  return bytes;
}
EXPORT(decoderRead)
int32_t decoderRead(const Decoder* decoder, uint32_t firstIndex, uint32_t count, uint8_t* out, size_t outBytes) {
  return resultOf(decoder->read(firstIndex, count, {out, outBytes}));
}

EXPORT(recoderNew) Recoder* recoderNew(uint32_t symbolCount, uint32_t symbolBytes) {
  return create<Recoder>(symbolCount, symbolBytes);
}
EXPORT(recoderFree) void recoderFree(Recoder* recoder) { destroy(recoder); }
EXPORT(recoderRank) uint32_t recoderRank(const Recoder* recoder) { return recoder->rank(); }
EXPORT(recoderAddSystematic)
int32_t recoderAddSystematic(Recoder* recoder, uint32_t index, const uint8_t* payload, size_t payloadBytes) {
  bool innovative = false;
  const Status status = recoder->addSystematic(index, {payload, payloadBytes}, innovative);
  return resultOf(status, innovative);
}
EXPORT(recoderAddSeeded)
int32_t recoderAddSeeded(Recoder* recoder, uint32_t seed, const uint8_t* payload, size_t payloadBytes) {
  bool innovative = false;
  const Status status = recoder->addSeeded(seed, {payload, payloadBytes}, innovative);
  return resultOf(status, innovative);
}
EXPORT(recoderAddVector)
int32_t recoderAddVector(Recoder* recoder, const uint8_t* coefficients, size_t coefficientCount,
                         const uint8_t* payload, size_t payloadBytes) {
  bool innovative = false;
  const Status status = recoder->addVector({coefficients, coefficientCount}, {payload, payloadBytes}, innovative);
  return resultOf(status, innovative);
}
EXPORT(recoderRecode)
int32_t recoderRecode(const Recoder* recoder, uint32_t seed, uint8_t* outCoefficients, size_t coefficientCount,
                      uint8_t* outPayload, size_t payloadBytes) {
  return resultOf(recoder->recode(seed, {outCoefficients, coefficientCount}, {outPayload, payloadBytes}));
}

EXPORT(repairEncoderNew) RepairEncoder* repairEncoderNew(uint32_t symbolCount, uint32_t symbolBytes) {
  return create<RepairEncoder>(symbolCount, symbolBytes);
}
EXPORT(repairEncoderFree) void repairEncoderFree(RepairEncoder* encoder) { destroy(encoder); }
EXPORT(repairEncoderSetSymbols)
int32_t repairEncoderSetSymbols(RepairEncoder* encoder, uint32_t firstIndex, const uint8_t* bytes, size_t byteCount) {
  return resultOf(encoder->setSymbols(firstIndex, {bytes, byteCount}));
}
EXPORT(repairEncoderEncodeSeeds)
int32_t repairEncoderEncodeSeeds(const RepairEncoder* encoder, const uint32_t* seeds, size_t seedCount, uint8_t* out,
                                 size_t outBytes) {
  return resultOf(encoder->encodeSeeds({seeds, seedCount}, {out, outBytes}));
}

EXPORT(repairDecoderNew) RepairDecoder* repairDecoderNew(uint32_t symbolCount, uint32_t symbolBytes) {
  return create<RepairDecoder>(symbolCount, symbolBytes);
}
EXPORT(repairDecoderFree) void repairDecoderFree(RepairDecoder* decoder) { destroy(decoder); }
EXPORT(repairDecoderMissingCount) uint32_t repairDecoderMissingCount(const RepairDecoder* decoder) {
  return decoder->missingCount();
}
EXPORT(repairDecoderAddSource)
int32_t repairDecoderAddSource(RepairDecoder* decoder, uint32_t index, const uint8_t* payload, size_t payloadBytes) {
  bool innovative = false;
  const Status status = decoder->addSource(index, {payload, payloadBytes}, innovative);
  return resultOf(status, innovative);
}
EXPORT(repairDecoderAddSeeded)
int32_t repairDecoderAddSeeded(RepairDecoder* decoder, uint32_t seed, const uint8_t* payload, size_t payloadBytes) {
  bool innovative = false;
  const Status status = decoder->addSeeded(seed, {payload, payloadBytes}, innovative);
  return resultOf(status, innovative);
}
EXPORT(repairDecoderIsDecoded) int32_t repairDecoderIsDecoded(const RepairDecoder* decoder, uint32_t index) {
  bool decoded = false;
  const Status status = decoder->isDecoded(index, decoded);
  return resultOf(status, decoded);
}
EXPORT(repairDecoderSymbol) const uint8_t* repairDecoderSymbol(RepairDecoder* decoder, uint32_t index) {
  const uint8_t* bytes = nullptr;
  resultOf(decoder->symbol(index, bytes));
  return bytes;
}
