/** The tables of gf256.h, computed by the compiler. */
#include "gf256.h"

namespace tributary::gf256 {
namespace {

constexpr NibbleTables makeNibbleTables() {
  NibbleTables tables{};
  for (unsigned factor = 0; factor < 256; factor++) {
    for (unsigned i = 0; i < 16; i++) {
      tables.of[factor].low[i] = multiply(static_cast<uint8_t>(factor), static_cast<uint8_t>(i));
      tables.of[factor].high[i] = multiply(static_cast<uint8_t>(factor), static_cast<uint8_t>(i << 4));
    }
  }
  return tables;
}

/** The powers of 2 run through all 255 units, so 2^i and 2^(255 - i) are inverse. */
constexpr Inverses makeInverses() {
  uint8_t powers[256] = {1};
  for (unsigned i = 1; i < 256; i++) powers[i] = multiply(powers[i - 1], 2);
  Inverses inverses{};
  for (unsigned i = 0; i < 255; i++) inverses.of[powers[i]] = powers[255 - i];
  return inverses;
}

}  // namespace

constexpr NibbleTables kNibbleTables = makeNibbleTables();
constexpr Inverses kInverses = makeInverses();

}  // namespace tributary::gf256
