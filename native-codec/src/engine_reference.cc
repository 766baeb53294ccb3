/** The product as it is defined, one byte at a time. It is here to be read and to judge the others. */
#include "engine.h"
#include "gf256.h"

namespace tributary {
namespace {

bool isSupported() { return true; }

uint8_t sumAt(const Product& product, const uint8_t* coefficients, size_t position) {
  uint8_t sum = 0;
  for (size_t s = 0; s < product.sourceCount; s++) {
    sum ^= gf256::multiply(product.sources[s][position], coefficients[s]);
  }
  return sum;
}

void multiply(const Product& product) {
  for (size_t o = 0; o < product.outputCount; o++) {
    const uint8_t* coefficients = product.coefficients + o * product.coefficientStride;
    for (size_t i = 0; i < product.bytes; i++) {
      const uint8_t sum = sumAt(product, coefficients, i);
      product.outputs[o][i] = product.accumulate ? product.outputs[o][i] ^ sum : sum;
    }
  }
}

}  // namespace

extern const Engine kEngineReference = {"reference", isSupported, multiply};

}  // namespace tributary
