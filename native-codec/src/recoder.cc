/** Recoder: keeps innovative symbols as they came, with their vectors, and combines both alike. */
#include <cstring>

#include "checks.h"
#include "engine.h"
#include "tributary/codec.h"

namespace tributary {

Status Recoder::initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes) {
  TRIBUTARY_TRY(checkShape(symbolCount, symbolBytes));
  engine_ = &engine;
  symbolCount_ = symbolCount;
  symbolBytes_ = symbolBytes;
  TRIBUTARY_TRY(elimination_.initialize(engine, symbolCount, false));
  TRIBUTARY_TRY(vectors_.allocate(symbolCount, symbolCount));
  return payloads_.allocate(symbolCount, symbolBytes);
}

Status Recoder::addSystematic(uint32_t index, ConstBytes payload, bool& innovative) {
  TRIBUTARY_TRY(checkRange("index", index, 0, symbolCount_ - 1));
  TRIBUTARY_TRY(checkExact("payload", payload.size(), symbolBytes_));
  uint8_t coefficients[kSymbolCountMax] = {};
  coefficients[index] = 1;
  innovative = add(coefficients, payload.data());
  return {};
}

Status Recoder::addSeeded(uint32_t seed, ConstBytes payload, bool& innovative) {
  TRIBUTARY_TRY(checkExact("payload", payload.size(), symbolBytes_));
  uint8_t coefficients[kSymbolCountMax];
  coefficientsOf(seed, {coefficients, symbolCount_});
  innovative = add(coefficients, payload.data());
  return {};
}

Status Recoder::addVector(ConstBytes coefficients, ConstBytes payload, bool& innovative) {
  TRIBUTARY_TRY(checkExact("coefficients", coefficients.size(), symbolCount_));
  TRIBUTARY_TRY(checkExact("payload", payload.size(), symbolBytes_));
  innovative = add(coefficients.data(), payload.data());
  return {};
}

bool Recoder::add(const uint8_t* coefficients, const uint8_t* payload) {
  if (!elimination_.add(coefficients)) return false;
  const size_t row = elimination_.rank() - 1;
  memcpy(vectors_.row(row), coefficients, symbolCount_);
  memcpy(payloads_.row(row), payload, symbolBytes_);
  return true;
}

Status Recoder::recode(uint32_t seed, Bytes outCoefficients, Bytes outPayload) const {
  const size_t held = elimination_.rank();
  TRIBUTARY_TRY(checkRange("rank", held, 1, symbolCount_));
  TRIBUTARY_TRY(checkExact("outCoefficients", outCoefficients.size(), symbolCount_));
  TRIBUTARY_TRY(checkExact("outPayload", outPayload.size(), symbolBytes_));
  uint8_t multipliers[kSymbolCountMax];
  coefficientsOf(seed, {multipliers, held});
  const uint8_t* vectors[kSymbolCountMax];
  const uint8_t* payloads[kSymbolCountMax];
  for (size_t r = 0; r < held; r++) {
    vectors[r] = vectors_.row(r);
    payloads[r] = payloads_.row(r);
  }
  uint8_t* const vector = outCoefficients.data();
  uint8_t* const payload = outPayload.data();
  engine_->multiply({&vector, 1, vectors, held, multipliers, held, symbolCount_, false});
  engine_->multiply({&payload, 1, payloads, held, multipliers, held, symbolBytes_, false});
  return {};
}

}  // namespace tributary
