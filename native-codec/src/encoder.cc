/** Encoder: keeps source rows and makes several coded symbols in each pass over them. */
#include <cstring>

#include "checks.h"
#include "engine.h"
#include "tributary/codec.h"

namespace tributary {
namespace {

/** Coded symbols in one pass: a multiple of every engine's outputs, with vectors that fit on the stack. */
constexpr size_t kSeedsPerPass = 16;

}  // namespace

Status setRows(detail::Rows& rows, uint32_t symbolCount, uint32_t symbolBytes, uint32_t firstIndex, ConstBytes bytes) {
  TRIBUTARY_TRY(checkRange("firstIndex", firstIndex, 0, symbolCount - 1));
  TRIBUTARY_TRY(checkRange("bytes", bytes.size(), 1, uint64_t{symbolCount - firstIndex} * symbolBytes));
  size_t row = firstIndex;
  for (; bytes.size() >= symbolBytes; bytes = bytes.subspan(symbolBytes)) {
    memcpy(rows.row(row++), bytes.data(), symbolBytes);
  }
  if (!bytes.empty()) {
    memcpy(rows.row(row), bytes.data(), bytes.size());
    memset(rows.row(row) + bytes.size(), 0, symbolBytes - bytes.size());
  }
  return {};
}

Status Encoder::initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes) {
  TRIBUTARY_TRY(checkShape(symbolCount, symbolBytes));
  engine_ = &engine;
  symbolCount_ = symbolCount;
  symbolBytes_ = symbolBytes;
  TRIBUTARY_TRY(sources_.allocate(symbolCount, symbolBytes, detail::Fill::kZeros));
  for (size_t s = 0; s < symbolCount; s++) sourceRows_[s] = sources_.row(s);
  return {};
}

Status Encoder::setSymbols(uint32_t firstIndex, ConstBytes bytes) {
  return setRows(sources_, symbolCount_, symbolBytes_, firstIndex, bytes);
}

Status Encoder::encodeSeeds(std::span<const uint32_t> seeds, Bytes out) const {
  TRIBUTARY_TRY(checkRange("seeds", seeds.size(), 1, UINT32_MAX));
  TRIBUTARY_TRY(checkExact("out", out.size(), uint64_t{seeds.size()} * symbolBytes_));
  uint8_t coefficients[kSeedsPerPass * kSymbolCountMax];
  if (seeds.size() == 1) {
    coefficientsOf(seeds[0], {coefficients, symbolCount_});
    encodeOne(coefficients, out.data());
    return {};
  }
  for (size_t first = 0; first < seeds.size(); first += kSeedsPerPass) {
    const size_t count = seeds.size() - first < kSeedsPerPass ? seeds.size() - first : kSeedsPerPass;
    for (size_t i = 0; i < count; i++) {
      coefficientsOf(seeds[first + i], {coefficients + i * symbolCount_, symbolCount_});
    }
    encode(coefficients, count, out.data() + first * symbolBytes_);
  }
  return {};
}

Status Encoder::encodeVector(ConstBytes coefficients, Bytes out) const {
  TRIBUTARY_TRY(checkExact("coefficients", coefficients.size(), symbolCount_));
  TRIBUTARY_TRY(checkExact("out", out.size(), symbolBytes_));
  // Only the nonzero entries are multiplied, so a sparse vector is cheap.
  const uint8_t* sources[kSymbolCountMax];
  uint8_t factors[kSymbolCountMax];
  size_t count = 0;
  for (size_t s = 0; s < symbolCount_; s++) {
    if (coefficients[s] == 0) continue;
    sources[count] = sourceRows_[s];
    factors[count++] = coefficients[s];
  }
  if (count == symbolCount_) {
    encodeOne(coefficients.data(), out.data());
    return {};
  }
  uint8_t* const output = out.data();
  engine_->multiply({&output, 1, sources, count, factors, count, symbolBytes_, nullptr, turnsAround()});
  return {};
}

/** Makes at most kSeedsPerPass coded symbols, one after another in `out`. */
void Encoder::encode(const uint8_t* coefficients, size_t outputCount, uint8_t* out) const {
  uint8_t* outputs[kSeedsPerPass];
  for (size_t o = 0; o < outputCount; o++) outputs[o] = out + o * symbolBytes_;
  engine_->multiply({outputs, outputCount, sourceRows_, symbolCount_, coefficients, symbolCount_, symbolBytes_, nullptr,
                     turnsAround()});
}

/** Makes one coded symbol from all sources. */
void Encoder::encodeOne(const uint8_t* coefficients, uint8_t* out) const {
  engine_->sumRows(out, sources_.row(0), sources_.stride(), coefficients, symbolCount_, symbolBytes_, turnsAround());
}

bool Encoder::turnsAround() const {
  const bool fromEnd = !fromEnd_.load(std::memory_order_relaxed);
  fromEnd_.store(fromEnd, std::memory_order_relaxed);
  return fromEnd;
}

}  // namespace tributary
