/** The engine that follows the definition, one byte at a time. It explains the others and the tests trust it. */
#include <cstring>

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
      product.outputs[o][i] = product.addends != nullptr ? product.addends[o][i] ^ sum : sum;
    }
  }
}

void addRow(uint8_t* sum, const uint8_t* row, uint8_t factor, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) sum[i] ^= gf256::multiply(row[i], factor);
}

void sumRows(uint8_t* out, const uint8_t* rows, size_t stride, const uint8_t* factors, size_t count, size_t bytes,
             bool /*fromEnd*/) {
  memset(out, 0, bytes);
  for (size_t s = 0; s < count; s++) addRow(out, rows + s * stride, factors[s], bytes);
}

void combineRows(uint8_t* out, const uint8_t* addend, const uint8_t* rows, size_t stride, const uint8_t* factors,
                 size_t count, size_t bytes) {
  memcpy(out, addend, (bytes + kRowPadding - 1) / kRowPadding * kRowPadding);
  for (size_t r = 0; r < count; r++) addRow(out, rows + r * stride, factors[r], bytes);
}

void adoptRow(uint8_t* rows, size_t stride, size_t count, size_t pivot, const uint8_t* incoming, uint8_t scale,
              size_t bytes) {
  uint8_t* adopted = rows + pivot * stride;
  addRow(adopted, incoming, scale, bytes);
  adopted[pivot] ^= scale;
  for (size_t r = 0; r < count; r++) {
    if (r != pivot) addRow(rows + r * stride, adopted, rows[r * stride + pivot], bytes);
  }
  adopted[pivot] ^= 1;
}

}  // namespace

extern const Engine kEngineReference = {"reference", isSupported, multiply, sumRows, combineRows, adoptRow};

}  // namespace tributary
