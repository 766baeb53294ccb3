/** Makes the tables of gf256.h. The compiler computes them; WebAssembly computes the nibble tables at start. */
#include "gf256.h"

namespace tributary::gf256 {
namespace {

constexpr void fill(NibbleTables& tables) {
  for (unsigned factor = 0; factor < 256; factor++) {
    for (unsigned i = 0; i < 16; i++) {
      tables.of[factor].low[i] = multiply(static_cast<uint8_t>(factor), static_cast<uint8_t>(i));
      tables.of[factor].high[i] = multiply(static_cast<uint8_t>(factor), static_cast<uint8_t>(i << 4));
    }
  }
}

#if !defined(__wasm__)
constexpr NibbleTables makeNibbleTables() {
  NibbleTables tables{};
  fill(tables);
  return tables;
}

constexpr uint64_t matrixOf(uint8_t factor) {
  uint64_t matrix = 0;
  for (unsigned j = 0; j < 8; j++) {
    const unsigned image = multiply(factor, static_cast<uint8_t>(1u << j));
    for (unsigned i = 0; i < 8; i++) matrix |= static_cast<uint64_t>((image >> i) & 1) << (8 * (7 - i) + j);
  }
  return matrix;
}

constexpr BitMatrices makeBitMatrices() {
  BitMatrices matrices{};
  for (unsigned factor = 0; factor < 256; factor++) matrices.of[factor] = matrixOf(static_cast<uint8_t>(factor));
  return matrices;
}

/** The subfield's generator is 2^17, whose order is 15. The field's w is the smallest one that fits. */
constexpr Subfield makeSubfield() {
  Subfield field{};
  uint8_t generator = 1;
  for (unsigned i = 0; i < 17; i++) generator = multiply(generator, 2);
  uint8_t elements[16] = {};
  for (unsigned i = 0, power = 1; i < 4; i++, power = multiply(static_cast<uint8_t>(power), generator)) {
    for (unsigned n = 0; n < 16; n++) elements[n] ^= n >> i & 1 ? power : 0;
  }
  // If w^16 = w + 1, that is the other root of w^2 + w = e, and e is in the subfield.
  uint8_t w = 1;
  for (uint8_t power = w; (power ^ w) != 1;) {
    power = ++w;
    for (unsigned i = 0; i < 4; i++) power = multiply(power, power);
  }
  const uint8_t e = multiply(w, w) ^ w;
  for (unsigned x = 0; x < 256; x++) {
    field.coordinates[elements[x & 15] ^ multiply(w, elements[x >> 4])] = static_cast<uint8_t>(x);
  }
  for (unsigned i = 0; i < 16; i++) {
    field.ofHigh[i] = field.coordinates[i << 4];
    field.results[0][i] = multiply(elements[i], w ^ 1);
    field.results[1][i] = multiply(elements[i], e);
    field.results[2][i] = multiply(elements[i], w);
    for (unsigned factors = 0; factors < 256; factors++) {
      const uint8_t low = field.coordinates[multiply(elements[factors & 15], elements[i])];
      const uint8_t high = field.coordinates[multiply(elements[factors >> 4], elements[i])];
      field.products[factors][i] = static_cast<uint8_t>(low | high << 4);
    }
  }
  return field;
}
#endif

/** The powers of 2 are all 255 units, so 2^i and 2^(255 - i) are inverse. */
constexpr Inverses makeInverses() {
  uint8_t powers[256] = {1};
  for (unsigned i = 1; i < 256; i++) powers[i] = multiply(powers[i - 1], 2);
  Inverses inverses{};
  for (unsigned i = 0; i < 255; i++) inverses.of[powers[i]] = powers[255 - i];
  return inverses;
}

}  // namespace

#if defined(__wasm__)
NibbleTables kNibbleTables;
void makeTables() { fill(kNibbleTables); }
#else
constexpr NibbleTables kNibbleTables = makeNibbleTables();
constexpr BitMatrices kBitMatrices = makeBitMatrices();
constexpr Subfield kSubfield = makeSubfield();
#endif
constexpr Inverses kInverses = makeInverses();

}  // namespace tributary::gf256
