/**
 * GF(2^8) with polynomial 0x11D: arithmetic at compile time, and the tables that it makes.
 * Everything here is constexpr or defined in gf256.cc. So a file that is compiled for a newer instruction set shares no
 * inline function with other files.
 */
#ifndef TRIBUTARY_GF256_H_
#define TRIBUTARY_GF256_H_

#include <cstdint>

namespace tributary::gf256 {

inline constexpr unsigned kPolynomial = 0x11D;

/** Multiplies two field elements by shift and add. */
constexpr uint8_t multiply(uint8_t a, uint8_t b) {
  unsigned product = 0;
  for (unsigned shifted = a, bits = b; bits != 0; bits >>= 1) {
    if (bits & 1) product ^= shifted;
    shifted <<= 1;
    if (shifted & 0x100) shifted ^= kPolynomial;
  }
  return static_cast<uint8_t>(product);
}

/** The products of one factor and a nibble i: factor x i for the low nibble, factor x 16i for the high one. */
struct NibbleTable {
  alignas(32) uint8_t low[16];
  uint8_t high[16];
};

struct NibbleTables {
  NibbleTable of[256];
};

struct Inverses {
  uint8_t of[256];
};

/** Multiplication by a factor as an 8x8 bit matrix: bit j of byte 7 - i is 1 if input bit j adds to output bit i. */
struct BitMatrices {
  uint64_t of[256];
};

/**
 * GF(2^8) as pairs of elements of its subfield GF(2^4): x = x0 + x1 w. The element w is outside the subfield, and
 * e = w^2 + w is inside. A nibble stands for an element of the subfield. The XOR of two nibbles stands for their sum.
 */
struct Subfield {
  /** Tables for two factors a and b: products[a | b << 4][i] = a i | b i << 4. */
  alignas(64) uint8_t products[256][16];
  /** The nibbles x0 | x1 << 4 of a byte x. The first 16 entries serve its low nibble, `ofHigh` its high nibble. */
  alignas(16) uint8_t coordinates[256];
  uint8_t ofHigh[16];
  /** The byte that a nibble stands for, times 1 + w, times e and times w. */
  uint8_t results[3][16];
};

#if defined(__wasm__)
/** makeTables computes these when the module starts. In the module they would be a quarter of the download (8 KB). */
extern NibbleTables kNibbleTables;
void makeTables();
#else
extern const NibbleTables kNibbleTables;
extern const BitMatrices kBitMatrices;
extern const Subfield kSubfield;
#endif

/** Multiplicative inverses. The entry of 0 is 0. */
extern const Inverses kInverses;

}  // namespace tributary::gf256

#endif  // TRIBUTARY_GF256_H_
