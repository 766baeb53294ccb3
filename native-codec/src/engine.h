/** The interface of an engine: matrix products over GF(2^8), and a check whether this processor can run it. */
#ifndef TRIBUTARY_ENGINE_H_
#define TRIBUTARY_ENGINE_H_

#include <cstddef>
#include <cstdint>

namespace tributary {

/** A source row is readable up to the next multiple of this many bytes. The padding need not be zero. */
inline constexpr size_t kRowPadding = 64;

/**
 * A matrix product:
 *
 *     output[o][i] = (addend[o][i] +) sum over s of coefficients[o * coefficientStride + s] * source[s][i]
 *
 * for i < bytes. It writes outputs and reads addends for exactly `bytes` bytes, at any alignment. An output overlaps no
 * source and no other output. An addend is its own output or overlaps no output.
 *
 * With `fromEnd` the product walks the sources' bytes from the last to the first, as far as its blocks allow. If a
 * generation is slightly larger than a cache, passes in alternating directions find most of it there. Passes in one
 * direction find nothing.
 */
struct Product {
  uint8_t* const* outputs;
  size_t outputCount;
  const uint8_t* const* sources;
  size_t sourceCount;
  const uint8_t* coefficients;
  size_t coefficientStride;
  size_t bytes;
  /** One for each output, or nullptr. */
  const uint8_t* const* addends;
  bool fromEnd = false;
};

/**
 * A product with one output. Its `count` sources (1..kSymbolCountMax) are rows that start every `stride` bytes:
 *
 *     out[i] = sum over s < count of factors[s] * row s [i]     for i < bytes
 *
 * The rules of Product for outputs, sources and `fromEnd` hold here too. With one output, each loaded source serves one
 * multiplication, so loads and calls take most of the time. Pointers to rows and a Product would add a tenth to it.
 */
using SumRows = void(uint8_t* out, const uint8_t* rows, size_t stride, const uint8_t* factors, size_t count,
                     size_t bytes, bool fromEnd);

/** Implements SumRows by an engine's `multiply`. Defined in engines.cc. */
void sumRowsBy(void (*multiply)(const Product&), uint8_t* out, const uint8_t* rows, size_t stride,
               const uint8_t* factors, size_t count, size_t bytes, bool fromEnd);

/**
 * The two steps of an elimination, on short rows that start every `stride` bytes. All rows are readable and writable up
 * to the next multiple of kRowPadding.
 *
 *   combineRows   out = addend + sum over r < count of factors[r] * row r
 *   adoptRow      Let u be the unit vector of column `pivot`, and a = scale * (incoming + u). Adds row r [pivot] * a to
 *                 each row r < count. Then sets row `pivot`, which was zero, to a + u.
 */
using CombineRows = void(uint8_t* out, const uint8_t* addend, const uint8_t* rows, size_t stride,
                         const uint8_t* factors, size_t count, size_t bytes);
using AdoptRow = void(uint8_t* rows, size_t stride, size_t count, size_t pivot, const uint8_t* incoming, uint8_t scale,
                      size_t bytes);

struct Engine {
  const char* name;
  bool (*isSupported)();
  void (*multiply)(const Product&);
  SumRows* sumRows;
  CombineRows* combineRows;
  AdoptRow* adoptRow;
};

extern const Engine kEngineReference;
extern const Engine kEngineScalar;
extern const Engine kEngineSsse3;
extern const Engine kEngineAvx2;
extern const Engine kEngineGfni512;
extern const Engine kEngineGfni256;
extern const Engine kEngineNeon;
extern const Engine kEngineSimd128;

}  // namespace tributary

#endif  // TRIBUTARY_ENGINE_H_
