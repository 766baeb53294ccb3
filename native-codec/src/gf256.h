/**
 * GF(2^8) with polynomial 0x11D: the arithmetic at compile time, and the tables made with it.
 * Everything here is constexpr or defined in gf256.cc, so that a file compiled for a newer instruction set
 * shares no inline function with the rest.
 */
#ifndef TRIBUTARY_GF256_H_
#define TRIBUTARY_GF256_H_

#include <cstdint>

namespace tributary::gf256 {

inline constexpr unsigned kPolynomial = 0x11D;

/** The product of two field elements by shift and add. */
constexpr uint8_t multiply(uint8_t a, uint8_t b) {
  unsigned product = 0;
  for (unsigned shifted = a, bits = b; bits != 0; bits >>= 1) {
    if (bits & 1) product ^= shifted;
    shifted <<= 1;
    if (shifted & 0x100) shifted ^= kPolynomial;
  }
  return static_cast<uint8_t>(product);
}

/** What a nibble contributes to the product with one factor: factor x i, and factor x 16i. */
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

/** Multiplication by a factor as an 8x8 bit matrix: bit j of byte 7 - i says whether input bit j is in output bit i. */
struct BitMatrices {
  uint64_t of[256];
};

/**
 * GF(2^8) as pairs of elements of its subfield GF(2^4): x = x0 + x1 w, with a w outside it for which e = w^2 + w is
 * inside. A nibble stands for an element of the subfield; the XOR of two nibbles stands for the sum.
 */
struct Subfield {
  /** products[a | b << 4][i] = a i | b i << 4: tables of two factors. */
  alignas(64) uint8_t products[256][16];
  /** x0 | x1 << 4 of a byte x; the first sixteen are the table for its low nibble, `ofHigh` that for its high one. */
  alignas(16) uint8_t coordinates[256];
  uint8_t ofHigh[16];
  /** The bytes that nibbles stand for, times 1 + w, times e, times w. */
  uint8_t results[3][16];
};

#if defined(__wasm__)
/** Computed when the module starts, as 8 KB of tables would be a quarter of what is downloaded. */
extern NibbleTables kNibbleTables;
void makeTables();
#else
extern const NibbleTables kNibbleTables;
extern const BitMatrices kBitMatrices;
extern const Subfield kSubfield;
#endif

/** Multiplicative inverses; the entry of 0 is 0. */
extern const Inverses kInverses;

}  // namespace tributary::gf256

#endif  // TRIBUTARY_GF256_H_
