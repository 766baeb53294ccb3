/** Recoder: combines the symbols that the collector keeps, vectors and payloads alike. */
#include "checks.h"
#include "engine.h"
#include "tributary/codec.h"

namespace tributary {

Status Recoder::initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes) {
  return Collector::initialize(engine, symbolCount, symbolBytes, Keeps::kVectors);
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
