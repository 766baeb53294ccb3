/**
 * The portable engine. It needs no tables and works on words of eight bytes. A coefficient is a polynomial with eight
 * binary digits. So the sum over the sources splits into eight sums of plain XORs, one for each digit. Horner's rule
 * joins them at the end by seven doublings a word, for any number of sources. Compilers vectorize these loops.
 */
#include <cstring>

#include "engine.h"

namespace tributary {
namespace {

constexpr size_t kWords = 4;
constexpr size_t kBlockBytes = kWords * sizeof(uint64_t);
constexpr uint64_t kOnes = 0x0101010101010101;

bool isSupported() { return true; }

/** Multiplies each of the eight bytes by 2. */
inline uint64_t doubled(uint64_t bytes) {
  const uint64_t carries = (bytes >> 7) & kOnes;
  return ((bytes << 1) & (0xFE * kOnes)) ^ (carries * 0x1D);
}

struct Block {
  uint64_t words[kWords];
};

Block productBlock(const Product& product, const uint8_t* coefficients, size_t offset) {
  Block digits[8] = {};
  for (size_t s = 0; s < product.sourceCount; s++) {
    Block source;
    memcpy(source.words, product.sources[s] + offset, kBlockBytes);
    for (unsigned d = 0; d < 8; d++) {
      const uint64_t mask = 0 - static_cast<uint64_t>((coefficients[s] >> d) & 1);
      for (size_t w = 0; w < kWords; w++) digits[d].words[w] ^= source.words[w] & mask;
    }
  }
  Block sum = digits[7];
  for (unsigned d = 7; d-- > 0;) {
    for (size_t w = 0; w < kWords; w++) sum.words[w] = doubled(sum.words[w]) ^ digits[d].words[w];
  }
  return sum;
}

void addBlock(Block& sum, const uint8_t* addend, size_t bytes) {
  Block held = {};
  memcpy(held.words, addend, bytes);
  for (size_t w = 0; w < kWords; w++) sum.words[w] ^= held.words[w];
}

void multiply(const Product& product) {
  for (size_t o = 0; o < product.outputCount; o++) {
    const uint8_t* coefficients = product.coefficients + o * product.coefficientStride;
    for (size_t offset = 0; offset < product.bytes; offset += kBlockBytes) {
      const size_t left = product.bytes - offset;
      const size_t bytes = left < kBlockBytes ? left : kBlockBytes;
      Block sum = productBlock(product, coefficients, offset);
      if (product.addends != nullptr) addBlock(sum, product.addends[o] + offset, bytes);
      memcpy(product.outputs[o] + offset, sum.words, bytes);
    }
  }
}

void sumRows(uint8_t* out, const uint8_t* rows, size_t stride, const uint8_t* factors, size_t count, size_t bytes,
             bool fromEnd) {
  sumRowsBy(multiply, out, rows, stride, factors, count, bytes, fromEnd);
}

/** Works on whole words, because rows are padded. */
void addRow(uint8_t* sum, const uint8_t* row, uint8_t factor, size_t bytes) {
  if (factor == 0) return;
  for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
    uint64_t source, total;
    memcpy(&source, row + i, sizeof source);
    memcpy(&total, sum + i, sizeof total);
    uint64_t product = 0;
    for (unsigned d = 8; d-- > 0;)
      product = doubled(product) ^ (source & (0 - static_cast<uint64_t>((factor >> d) & 1)));
    total ^= product;
    memcpy(sum + i, &total, sizeof total);
  }
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

extern const Engine kEngineScalar = {"scalar", isSupported, multiply, sumRows, combineRows, adoptRow};

}  // namespace tributary
