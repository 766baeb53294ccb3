/**
 * Large products for an x86 vector unit that looks up tables of 16 bytes. They are computed over the subfield GF(2^4)
 * (gf256.h: Subfield) by the identity of Karatsuba and Ofman (1962):
 *
 *   c x = c0 x0 (1 + w) + c1 x1 e + (c0 + c1) (x0 + x1) w
 *
 * An entry of a table holds one nibble for each of two outputs. So two outputs take three look-ups and three XORs for
 * each source, where tables of bytes take four of each. The sources of a strip are split into the nibbles x0, x1 and
 * x0 + x1 once for all outputs. The three sums are joined to bytes once for all sources.
 *
 * The code needs of the engine's V (engine_block.h): Vector, kWidth, zero, load, store, add, a split that gives
 * nibbles, and
 *
 *   loadNibbles              loads a vector that serves several look-ups
 *   table(const uint8_t*)    loads an aligned table of 16 bytes
 *   lookUp(table, nibbles)   returns the table's entry for each byte, 0..15
 */
#ifndef TRIBUTARY_ENGINE_SUBFIELD_H_
#define TRIBUTARY_ENGINE_SUBFIELD_H_

#include "engine_block.h"
#include "gf256.h"

namespace tributary {

template <class V>
class SubfieldProduct {
 public:
  /** For smaller products, finding tables, splitting and joining cost more than they save. */
  static bool pays(const Product& product) {
    return product.outputCount >= 16 && product.sourceCount >= 16 && product.bytes >= 1024;
  }

  /** Computes whole strips of whole blocks, and the rest by tables of bytes. */
  static void multiply(const Product& product) {
    SubfieldProduct whole(product);
    const size_t end = product.bytes / kStripBytes * kStripBytes;
    const size_t outputs = product.outputCount / kBlockOutputs * kBlockOutputs;
    for (size_t o = 0; o < outputs; o += kOutputsMax) whole.multiplyOutputs(o, least(outputs - o, kOutputsMax), end);
    if (outputs < product.outputCount) multiplyStrip<V, V::kOutputs>(product, outputs, 0, end);
    if (end < product.bytes) multiplyStrip<V, V::kOutputs>(product, 0, end, product.bytes);
  }

 private:
  using Vector = typename V::Vector;
  static constexpr size_t kNibbles = 3;
  static constexpr size_t kVectors = 4;
  static constexpr size_t kStripBytes = kVectors * V::kWidth;
  /** A table serves a pair of outputs, and the nibbles of a source serve two pairs. */
  static constexpr size_t kBlockPairs = 2;
  static constexpr size_t kBlockOutputs = 2 * kBlockPairs;
  /** Sources in one pass. Their nibbles (24 KB for AVX2) stay in the nearest cache. */
  static constexpr size_t kSourcesMax = 64;
  static constexpr size_t kOutputsMax = 64;

  const Product& product_;
  /** The nibbles and the sums of one strip. */
  alignas(64) uint8_t nibbles_[kNibbles][kSourcesMax][kStripBytes];
  alignas(64) uint8_t sums_[kNibbles][kBlockPairs][kStripBytes];
  /** Offsets in kSubfield.products of a pair's tables, one for each source. */
  uint16_t tables_[kOutputsMax / 2][kNibbles][kSourcesMax];

  explicit SubfieldProduct(const Product& product) : product_(product) {}

  static size_t least(size_t a, size_t b) { return a < b ? a : b; }

  /** Makes passes of equal size. Each pass but the first adds to the outputs of the last one. */
  void multiplyOutputs(size_t firstOutput, size_t outputCount, size_t end) {
    const size_t passes = (product_.sourceCount + kSourcesMax - 1) / kSourcesMax;
    const size_t perPass = (product_.sourceCount + passes - 1) / passes;
    const uint8_t* const* addends = product_.addends;
    for (size_t first = 0; first < product_.sourceCount; first += perPass) {
      const size_t count = least(product_.sourceCount - first, perPass);
      findTables(firstOutput, outputCount, first, count);
      for (size_t done = 0; done < end; done += kStripBytes) {
        const size_t offset = product_.fromEnd ? end - kStripBytes - done : done;
        splitSources(product_.sources + first, count, offset);
        for (size_t pair = 0; pair < outputCount / 2; pair += kBlockPairs) {
          for (size_t n = 0; n < kNibbles; n++) sumPairs(sums_[n][0], nibbles_[n][0], tables_[pair][n], count);
          for (size_t p = 0; p < kBlockPairs; p++) joinPair(p, firstOutput + 2 * (pair + p), addends, offset);
        }
      }
      addends = product_.outputs;
    }
  }

  void findTables(size_t firstOutput, size_t outputCount, size_t firstSource, size_t count) {
    constexpr unsigned kTableBytes = sizeof(gf256::kSubfield.products[0]);
    const size_t stride = product_.coefficientStride;
    const uint8_t* factors = product_.coefficients + firstOutput * stride + firstSource;
    for (size_t pair = 0; pair < outputCount / 2; pair++, factors += 2 * stride) {
      for (size_t s = 0; s < count; s++) {
        const unsigned c = gf256::kSubfield.coordinates[factors[s]];
        const unsigned d = gf256::kSubfield.coordinates[factors[stride + s]];
        const unsigned low = (c & 0x0F) | (d & 0x0F) << 4;
        const unsigned high = c >> 4 | (d & 0xF0);
        tables_[pair][0][s] = static_cast<uint16_t>(low * kTableBytes);
        tables_[pair][1][s] = static_cast<uint16_t>(high * kTableBytes);
        tables_[pair][2][s] = static_cast<uint16_t>((low ^ high) * kTableBytes);
      }
    }
  }

  void splitSources(const uint8_t* const* sources, size_t count, size_t offset) {
    const Vector ofLow = V::table(gf256::kSubfield.coordinates);
    const Vector ofHigh = V::table(gf256::kSubfield.ofHigh);
    for (size_t s = 0; s < count; s++) {
      const uint8_t* const source = sources[s] + offset;
      TRIBUTARY_UNROLL
      for (size_t at = 0; at < kStripBytes; at += V::kWidth) {
        const typename V::Split byte = V::split(V::load(source + at));
        const typename V::Split x = V::split(V::add(V::lookUp(ofLow, byte.low), V::lookUp(ofHigh, byte.high)));
        V::store(nibbles_[0][s] + at, x.low);
        V::store(nibbles_[1][s] + at, x.high);
        V::store(nibbles_[2][s] + at, V::add(x.low, x.high));
      }
    }
  }

  /** For each pair of a block, sums the tables' entries for one of the three nibbles over all sources. */
  static TRIBUTARY_OUT_OF_LINE void sumPairs(uint8_t* out, const uint8_t* nibbles, const uint16_t* tables,
                                             size_t count) {
    Vector sums[kBlockPairs][kVectors];
    TRIBUTARY_UNROLL
    for (size_t p = 0; p < kBlockPairs; p++) {
      TRIBUTARY_UNROLL
      for (size_t v = 0; v < kVectors; v++) sums[p][v] = V::zero();
    }
    const uint16_t* const end = tables + count;
    do {
      Vector table[kBlockPairs];
      TRIBUTARY_UNROLL
      for (size_t p = 0; p < kBlockPairs; p++) {
        table[p] = V::table(gf256::kSubfield.products[0] + tables[p * kNibbles * kSourcesMax]);
      }
      TRIBUTARY_UNROLL
      for (size_t v = 0; v < kVectors; v++) {
        const Vector x = V::loadNibbles(nibbles + v * V::kWidth);
        TRIBUTARY_UNROLL
        for (size_t p = 0; p < kBlockPairs; p++) sums[p][v] = V::add(sums[p][v], V::lookUp(table[p], x));
      }
      nibbles += kStripBytes;
    } while (++tables != end);
    TRIBUTARY_UNROLL
    for (size_t p = 0; p < kBlockPairs; p++) {
      TRIBUTARY_UNROLL
      for (size_t v = 0; v < kVectors; v++) V::store(out + p * kStripBytes + v * V::kWidth, sums[p][v]);
    }
  }

  /** Joins the sums of `pair` to outputs `output` and `output` + 1. */
  void joinPair(size_t pair, size_t output, const uint8_t* const* addends, size_t offset) {
    const Vector results[kNibbles] = {V::table(gf256::kSubfield.results[0]), V::table(gf256::kSubfield.results[1]),
                                      V::table(gf256::kSubfield.results[2])};
    for (size_t at = 0; at < kStripBytes; at += V::kWidth) {
      Vector first = V::zero();
      Vector second = V::zero();
      TRIBUTARY_UNROLL
      for (size_t n = 0; n < kNibbles; n++) {
        const typename V::Split sum = V::split(V::load(sums_[n][pair] + at));
        first = V::add(first, V::lookUp(results[n], sum.low));
        second = V::add(second, V::lookUp(results[n], sum.high));
      }
      if (addends != nullptr) {
        first = V::add(first, V::load(addends[output] + offset + at));
        second = V::add(second, V::load(addends[output + 1] + offset + at));
      }
      V::store(product_.outputs[output] + offset + at, first);
      V::store(product_.outputs[output + 1] + offset + at, second);
    }
  }
};

/** Computes a product in the faster of the two ways. */
template <class V>
void multiplyByTables(const Product& product) {
  if (SubfieldProduct<V>::pays(product)) return SubfieldProduct<V>::multiply(product);
  multiplyBlocked<V>(product);
}

}  // namespace tributary

#endif  // TRIBUTARY_ENGINE_SUBFIELD_H_
