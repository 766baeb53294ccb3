/** Collector: checks a symbol of each kind and turns it into a coefficient vector and a payload. */
#include "checks.h"
#include "tributary/codec.h"

namespace tributary::detail {

void Collector::setShape(uint32_t symbolCount, uint32_t symbolBytes) {
  symbolCount_ = symbolCount;
  symbolBytes_ = symbolBytes;
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

}  // namespace tributary::detail
