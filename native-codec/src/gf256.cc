/** The tables of gf256.h, computed by the compiler; in WebAssembly the large ones when the module starts. */
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
#endif

/** The powers of 2 run through all 255 units, so 2^i and 2^(255 - i) are inverse. */
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
#endif
constexpr Inverses kInverses = makeInverses();

}  // namespace tributary::gf256
