/** Collector: symbols in, rank up. Payloads are stored only, and only those of innovative symbols. */
#include <cstring>

#include "checks.h"
#include "engine.h"
#include "tributary/codec.h"

namespace tributary::detail {

Status Collector::initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes, Keeps keeps) {
  TRIBUTARY_TRY(checkShape(symbolCount, symbolBytes));
  engine_ = &engine;
  symbolCount_ = symbolCount;
  symbolBytes_ = symbolBytes;
  keeps_ = keeps;
  TRIBUTARY_TRY(elimination_.initialize(engine, symbolCount, keeps == Keeps::kTransform));
  if (keeps == Keeps::kVectors) TRIBUTARY_TRY(vectors_.allocate(symbolCount, symbolCount));
  return payloads_.allocate(symbolCount, symbolBytes);
}

Status Collector::addSystematic(uint32_t index, ConstBytes payload, bool& innovative) {
  TRIBUTARY_TRY(checkRange("index", index, 0, symbolCount_ - 1));
  TRIBUTARY_TRY(checkExact("payload", payload.size(), symbolBytes_));
  uint8_t coefficients[kSymbolCountMax] = {};
  coefficients[index] = 1;
  innovative = add(coefficients, payload.data());
  return {};
}

Status Collector::addSeeded(uint32_t seed, ConstBytes payload, bool& innovative) {
  TRIBUTARY_TRY(checkExact("payload", payload.size(), symbolBytes_));
  uint8_t coefficients[kSymbolCountMax];
  coefficientsOf(seed, {coefficients, symbolCount_});
  innovative = add(coefficients, payload.data());
  return {};
}

Status Collector::addVector(ConstBytes coefficients, ConstBytes payload, bool& innovative) {
  TRIBUTARY_TRY(checkExact("coefficients", coefficients.size(), symbolCount_));
  TRIBUTARY_TRY(checkExact("payload", payload.size(), symbolBytes_));
  innovative = add(coefficients.data(), payload.data());
  return {};
}

bool Collector::add(const uint8_t* coefficients, const uint8_t* payload) {
  if (!elimination_.add(coefficients)) return false;
  const size_t row = elimination_.rank() - 1;
  memcpy(payloads_.row(row), payload, symbolBytes_);
  if (keeps_ == Keeps::kVectors) memcpy(vectors_.row(row), coefficients, symbolCount_);
  return true;
}

}  // namespace tributary::detail
