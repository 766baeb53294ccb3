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
  return Collector::initialize(engine, symbolCount, symbolBytes, Keeps::kTransform);
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
  for (uint32_t i = firstIndex; i < firstIndex + count; i++) {
    if (!elimination_.determines(i)) return misuse("notDecoded", i, rank());
  }
  uint16_t missing[kSymbolCountMax];
  size_t missingCount = 0;
  for (uint32_t i = firstIndex; i < firstIndex + count; i++) {
    const uint8_t* payload = payloadOf(i);
    if (payload != nullptr) {
      memcpy(out.data() + size_t{i - firstIndex} * symbolBytes_, payload, symbolBytes_);
    } else {
      missing[missingCount++] = static_cast<uint16_t>(i);
    }
  }
  for (size_t first = 0; first < missingCount; first += kSymbolsPerPass) {
    const size_t left = missingCount - first;
    solve(missing + first, left < kSymbolsPerPass ? left : kSymbolsPerPass, firstIndex, out.data());
  }
  return {};
}

/** The payload that is the determined symbol `index` as it stands, if one is: a systematic symbol's. */
const uint8_t* Decoder::payloadOf(uint32_t index) const {
  const uint8_t* multipliers = elimination_.multipliersOf(index);
  size_t row = 0;
  while (multipliers[row] == 0) row++;
  if (multipliers[row] != 1) return nullptr;
  for (size_t r = row + 1; r < elimination_.rank(); r++) {
    if (multipliers[r] != 0) return nullptr;
  }
  return payloads_.row(row);
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
