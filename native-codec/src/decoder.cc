/** Decoder: elimination on the coefficients as they come, one blocked product over the payloads when symbols are read. */
#include <cstring>

#include "checks.h"
#include "engine.h"
#include "tributary/codec.h"

namespace tributary {
namespace {

/** Symbols solved in one pass over the payloads: a multiple of every engine's outputs, small enough for the stack. */
constexpr size_t kSymbolsPerPass = 16;

}  // namespace

Status Decoder::initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes) {
  TRIBUTARY_TRY(checkShape(symbolCount, symbolBytes));
  engine_ = &engine;
  symbolCount_ = symbolCount;
  symbolBytes_ = symbolBytes;
  TRIBUTARY_TRY(elimination_.initialize(engine, symbolCount, true));
  return payloads_.allocate(symbolCount, symbolBytes);
}

Status Decoder::addSystematic(uint32_t index, ConstBytes payload, bool& innovative) {
  TRIBUTARY_TRY(checkRange("index", index, 0, symbolCount_ - 1));
  TRIBUTARY_TRY(checkExact("payload", payload.size(), symbolBytes_));
  uint8_t coefficients[kSymbolCountMax] = {};
  coefficients[index] = 1;
  innovative = add(coefficients, payload.data());
  if (innovative) copyOf_[index] = static_cast<uint16_t>(rank());
  return {};
}

Status Decoder::addSeeded(uint32_t seed, ConstBytes payload, bool& innovative) {
  TRIBUTARY_TRY(checkExact("payload", payload.size(), symbolBytes_));
  uint8_t coefficients[kSymbolCountMax];
  coefficientsOf(seed, {coefficients, symbolCount_});
  innovative = add(coefficients, payload.data());
  return {};
}

Status Decoder::addVector(ConstBytes coefficients, ConstBytes payload, bool& innovative) {
  TRIBUTARY_TRY(checkExact("coefficients", coefficients.size(), symbolCount_));
  TRIBUTARY_TRY(checkExact("payload", payload.size(), symbolBytes_));
  innovative = add(coefficients.data(), payload.data());
  return {};
}

bool Decoder::add(const uint8_t* coefficients, const uint8_t* payload) {
  if (!elimination_.add(coefficients)) return false;
  memcpy(payloads_.row(elimination_.rank() - 1), payload, symbolBytes_);
  return true;
}

Status Decoder::isDecoded(uint32_t index, bool& decoded) const {
  TRIBUTARY_TRY(checkRange("index", index, 0, symbolCount_ - 1));
  decoded = elimination_.determines(index);
  return {};
}

Status Decoder::read(uint32_t firstIndex, uint32_t count, Bytes out) const {
  TRIBUTARY_TRY(checkRange("firstIndex", firstIndex, 0, symbolCount_ - 1));
  TRIBUTARY_TRY(checkRange("count", count, 1, symbolCount_ - firstIndex));
  TRIBUTARY_TRY(checkExact("out", out.size(), uint64_t{count} * symbolBytes_));
  uint16_t missing[kSymbolCountMax];
  size_t missingCount = 0;
  for (uint32_t i = firstIndex; i < firstIndex + count; i++) {
    if (!elimination_.determines(i)) return misuse("notDecoded", i, rank());
    if (copyOf_[i] == 0) missing[missingCount++] = static_cast<uint16_t>(i);
  }
  for (uint32_t i = firstIndex; i < firstIndex + count; i++) {
    if (copyOf_[i] == 0) continue;
    memcpy(out.data() + size_t{i - firstIndex} * symbolBytes_, payloads_.row(copyOf_[i] - 1u), symbolBytes_);
  }
  for (size_t first = 0; first < missingCount; first += kSymbolsPerPass) {
    const size_t left = missingCount - first;
    solve(missing + first, left < kSymbolsPerPass ? left : kSymbolsPerPass, firstIndex, out.data());
  }
  return {};
}

/** Computes determined symbols (at most kSymbolsPerPass) from the payloads, to where they belong in `out`. */
void Decoder::solve(const uint16_t* symbols, size_t count, uint32_t firstIndex, uint8_t* out) const {
  const size_t held = elimination_.rank();
  const uint8_t* sources[kSymbolCountMax];
  for (size_t s = 0; s < held; s++) sources[s] = payloads_.row(s);
  uint8_t* outputs[kSymbolsPerPass];
  uint8_t multipliers[kSymbolsPerPass * kSymbolCountMax];
  for (size_t o = 0; o < count; o++) {
    outputs[o] = out + size_t{symbols[o] - firstIndex} * symbolBytes_;
    memcpy(multipliers + o * held, elimination_.multipliersOf(symbols[o]), held);
  }
  engine_->multiply({outputs, count, sources, held, multipliers, held, symbolBytes_, false});
}

}  // namespace tributary
