/** Recoder: keeps the vectors and payloads of innovative symbols, and combines both by the same multipliers. */
#include <cstring>

#include "checks.h"
#include "engine.h"
#include "tributary/codec.h"

namespace tributary {

using detail::Elimination;
using detail::Fill;

Status Recoder::initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes) {
  TRIBUTARY_TRY(checkShape(symbolCount, symbolBytes));
  setShape(symbolCount, symbolBytes);
  engine_ = &engine;
  TRIBUTARY_TRY(elimination_.initialize(engine, symbolCount));
  TRIBUTARY_TRY(vectors_.allocate(symbolCount, symbolCount, Fill::kNothing));
  return payloads_.allocate(symbolCount, symbolBytes, Fill::kNothing);
}

bool Recoder::add(const uint8_t* coefficients, const uint8_t* payload) {
  if (elimination_.add(coefficients) == Elimination::kNone) return false;
  const size_t row = elimination_.rank() - 1;
  memcpy(payloads_.row(row), payload, symbolBytes());
  memcpy(vectors_.row(row), coefficients, symbolCount());
  return true;
}

Status Recoder::recode(uint32_t seed, Bytes outCoefficients, Bytes outPayload) const {
  const size_t held = elimination_.rank();
  TRIBUTARY_TRY(checkRange("rank", held, 1, symbolCount()));
  TRIBUTARY_TRY(checkExact("outCoefficients", outCoefficients.size(), symbolCount()));
  TRIBUTARY_TRY(checkExact("outPayload", outPayload.size(), symbolBytes()));
  uint8_t multipliers[kSymbolCountMax];
  coefficientsOf(seed, {multipliers, held});
  const auto combine = [&](Bytes out, const detail::Rows& rows) {
    engine_->sumRows(out.data(), rows.row(0), rows.stride(), multipliers, held, out.size(), false);
  };
  combine(outCoefficients, vectors_);
  combine(outPayload, payloads_);
  return {};
}

}  // namespace tributary
