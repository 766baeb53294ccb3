/**
 * The codec core as WebAssembly exports: flat functions on addresses and integers. Only this package's TypeScript calls
 * them. A function that fails returns a negative number, and the status record at `statusAddress` says what was wrong.
 * Payloads and vectors come without a length; the coder's shape gives it. The caller checks lengths before it copies,
 * and the core checks everything else.
 */
#include <cstdlib>
#include <cstring>
#include <new>

#include "gf256.h"
#include "tributary/codec.h"

#define EXPORT(name) extern "C" __attribute__((export_name(#name), used))

/** Never called. That of the C++ library would add formatted output, a third of the module. */
extern "C" void __cxa_pure_virtual() { __builtin_trap(); }

namespace {

using namespace tributary;

constexpr int32_t kFailed = -1;

/** src/memory.ts reads this record at fixed offsets. */
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

/** Makes a coder. If that fails, sets the status record and returns nullptr. */
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

/** Returns 1 if the symbol was innovative, else 0. `add` sets that and returns a Status. */
template <class Add>
int32_t resultOfAdding(Add add) {
  bool innovative = false;
  const Status status = add(innovative);
  return resultOf(status, innovative);
}

template <class Coder>
ConstBytes payloadOf(const Coder& coder, const uint8_t* payload) {
  return {payload, coder.symbolBytes()};
}

template <class Coder>
int32_t setSymbols(Coder& encoder, uint32_t firstIndex, const uint8_t* bytes, size_t byteCount) {
  return resultOf(encoder.setSymbols(firstIndex, {bytes, byteCount}));
}

template <class Coder>
int32_t encodeSeeds(const Coder& encoder, const uint32_t* seeds, size_t seedCount, uint8_t* out) {
  return resultOf(encoder.encodeSeeds({seeds, seedCount}, {out, seedCount * encoder.symbolBytes()}));
}

template <class Coder>
int32_t isDecoded(const Coder& decoder, uint32_t index) {
  bool decoded = false;
  const Status status = decoder.isDecoded(index, decoded);
  return resultOf(status, decoded);
}

template <class Coder>
int32_t read(Coder& decoder, uint32_t firstIndex, uint32_t count, uint8_t* out) {
  return resultOf(decoder.read(firstIndex, count, {out, size_t{count} * decoder.symbolBytes()}));
}

/** The handle of a decoder or a recoder, because both add symbols in the same way. */
using Collector = detail::Collector;
Decoder& decoderOf(Collector* handle) { return *static_cast<Decoder*>(handle); }
Recoder& recoderOf(Collector* handle) { return *static_cast<Recoder*>(handle); }

}  // namespace

/** Call this once, before any other export. */
EXPORT(start) void start() { gf256::makeTables(); }
EXPORT(statusAddress) const StatusRecord* statusAddress() { return &lastStatus; }
EXPORT(engineNameAddress) const char* engineNameAddress() { return engineName(engine()); }
EXPORT(allocate) void* allocate(size_t bytes) { return malloc(bytes); }
/** Grows the memory so that it has room for `bytes`. Returns 0 if that fails. */
EXPORT(reserve) int32_t reserve(size_t bytes) {
  void* pool = malloc(bytes);
  if (pool == nullptr) return 0;
  // Without this write, the compiler removes an allocation that nobody uses.
  *static_cast<volatile uint8_t*>(pool) = 0;
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
  return setSymbols(*encoder, firstIndex, bytes, byteCount);
}
EXPORT(encoderEncodeSeeds)
int32_t encoderEncodeSeeds(const Encoder* encoder, const uint32_t* seeds, size_t seedCount, uint8_t* out) {
  return encodeSeeds(*encoder, seeds, seedCount, out);
}
EXPORT(encoderEncodeVector)
int32_t encoderEncodeVector(const Encoder* encoder, const uint8_t* coefficients, uint8_t* out) {
  return resultOf(encoder->encodeVector({coefficients, encoder->symbolCount()}, {out, encoder->symbolBytes()}));
}

EXPORT(collectorAddSystematic)
int32_t collectorAddSystematic(Collector* collector, uint32_t index, const uint8_t* payload) {
  return resultOfAdding(
      [=](bool& innovative) { return collector->addSystematic(index, payloadOf(*collector, payload), innovative); });
}
EXPORT(collectorAddSeeded)
int32_t collectorAddSeeded(Collector* collector, uint32_t seed, const uint8_t* payload) {
  return resultOfAdding(
      [=](bool& innovative) { return collector->addSeeded(seed, payloadOf(*collector, payload), innovative); });
}
EXPORT(collectorAddVector)
int32_t collectorAddVector(Collector* collector, const uint8_t* coefficients, const uint8_t* payload) {
  return resultOfAdding([=](bool& innovative) {
    const ConstBytes vector = {coefficients, collector->symbolCount()};
    return collector->addVector(vector, payloadOf(*collector, payload), innovative);
  });
}

EXPORT(decoderNew) Collector* decoderNew(uint32_t symbolCount, uint32_t symbolBytes) {
  return create<Decoder>(symbolCount, symbolBytes);
}
EXPORT(decoderFree) void decoderFree(Collector* decoder) { destroy(&decoderOf(decoder)); }
EXPORT(decoderRank) uint32_t decoderRank(Collector* decoder) { return decoderOf(decoder).rank(); }
EXPORT(decoderIsDecoded) int32_t decoderIsDecoded(Collector* decoder, uint32_t index) {
  return isDecoded(decoderOf(decoder), index);
}
EXPORT(decoderRead) int32_t decoderRead(Collector* decoder, uint32_t firstIndex, uint32_t count, uint8_t* out) {
  return read(decoderOf(decoder), firstIndex, count, out);
}

EXPORT(recoderNew) Collector* recoderNew(uint32_t symbolCount, uint32_t symbolBytes) {
  return create<Recoder>(symbolCount, symbolBytes);
}
EXPORT(recoderFree) void recoderFree(Collector* recoder) { destroy(&recoderOf(recoder)); }
EXPORT(recoderRank) uint32_t recoderRank(Collector* recoder) { return recoderOf(recoder).rank(); }
EXPORT(recoderRecode)
int32_t recoderRecode(Collector* recoder, uint32_t seed, uint8_t* outCoefficients, uint8_t* outPayload) {
  const Recoder& coder = recoderOf(recoder);
  return resultOf(coder.recode(seed, {outCoefficients, coder.symbolCount()}, {outPayload, coder.symbolBytes()}));
}

EXPORT(repairEncoderNew) RepairEncoder* repairEncoderNew(uint32_t symbolCount, uint32_t symbolBytes) {
  return create<RepairEncoder>(symbolCount, symbolBytes);
}
EXPORT(repairEncoderFree) void repairEncoderFree(RepairEncoder* encoder) { destroy(encoder); }
EXPORT(repairEncoderSetSymbols)
int32_t repairEncoderSetSymbols(RepairEncoder* encoder, uint32_t firstIndex, const uint8_t* bytes, size_t byteCount) {
  return setSymbols(*encoder, firstIndex, bytes, byteCount);
}
EXPORT(repairEncoderEncodeSeeds)
int32_t repairEncoderEncodeSeeds(const RepairEncoder* encoder, const uint32_t* seeds, size_t seedCount, uint8_t* out) {
  return encodeSeeds(*encoder, seeds, seedCount, out);
}

EXPORT(repairDecoderNew) RepairDecoder* repairDecoderNew(uint32_t symbolCount, uint32_t symbolBytes) {
  return create<RepairDecoder>(symbolCount, symbolBytes);
}
EXPORT(repairDecoderFree) void repairDecoderFree(RepairDecoder* decoder) { destroy(decoder); }
EXPORT(repairDecoderMissingCount) uint32_t repairDecoderMissingCount(const RepairDecoder* decoder) {
  return decoder->missingCount();
}
EXPORT(repairDecoderAddSource)
int32_t repairDecoderAddSource(RepairDecoder* decoder, uint32_t index, const uint8_t* payload) {
  return resultOfAdding(
      [=](bool& innovative) { return decoder->addSource(index, payloadOf(*decoder, payload), innovative); });
}
EXPORT(repairDecoderAddSeeded)
int32_t repairDecoderAddSeeded(RepairDecoder* decoder, uint32_t seed, const uint8_t* payload) {
  return resultOfAdding(
      [=](bool& innovative) { return decoder->addSeeded(seed, payloadOf(*decoder, payload), innovative); });
}
EXPORT(repairDecoderIsDecoded) int32_t repairDecoderIsDecoded(const RepairDecoder* decoder, uint32_t index) {
  return isDecoded(*decoder, index);
}
EXPORT(repairDecoderRead)
int32_t repairDecoderRead(RepairDecoder* decoder, uint32_t firstIndex, uint32_t count, uint8_t* out) {
  return read(*decoder, firstIndex, count, out);
}
