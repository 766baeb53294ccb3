/** What an engine is: products over GF(2^8), of a matrix or of one vector, and whether this processor can run it. */
#ifndef TRIBUTARY_ENGINE_H_
#define TRIBUTARY_ENGINE_H_

#include <cstddef>
#include <cstdint>

namespace tributary {

/** Rows that are sources are readable (not necessarily zero) up to the next multiple of this many bytes. */
inline constexpr size_t kRowPadding = 64;

/**
 * output[o][i] = sum over s of coefficients[o * coefficientStride + s] * source[s][i], for i < bytes;
 * plus addend[o][i] where there are addends. Outputs are written, and addends read, for exactly `bytes` bytes, at any
 * alignment. No output overlaps a source or another output; an addend is the output itself or overlaps none.
 *
 * `fromEnd` asks to walk the sources' bytes from the last to the first, so far as blocks allow: a generation that is
 * little larger than a cache is found there, but for a small part, when passes over it alternate, and not at all when
 * they do not.
 */
struct Product {
  uint8_t* const* outputs;
  size_t outputCount;
  const uint8_t* const* sources;
  size_t sourceCount;
  const uint8_t* coefficients;
  size_t coefficientStride;
  size_t bytes;
  /** As many as outputs, or nullptr. */
  const uint8_t* const* addends;
  bool fromEnd = false;
};

/**
 * A product with one output, of rows that follow one another every `stride` bytes, `count` of them
 * (1..kSymbolCountMax): out[i] = sum over s < count of factors[s] * row s [i], for i < bytes. What a Product says of
 * outputs, of sources and of `fromEnd` holds here too. With one output every source is loaded for one multiplication;
 * loads and calls are what it takes, and pointers to rows and a description of the product would be a tenth of that.
 */
using SumRows = void(uint8_t* out, const uint8_t* rows, size_t stride, const uint8_t* factors, size_t count,
                     size_t bytes, bool fromEnd);

/** SumRows by an engine's `multiply`. In engines.cc. */
void sumRowsBy(void (*multiply)(const Product&), uint8_t* out, const uint8_t* rows, size_t stride,
               const uint8_t* factors, size_t count, size_t bytes, bool fromEnd);

/**
 * The two steps of an elimination, on rows that are short and follow one another every `stride` bytes. Up to the next
 * multiple of kRowPadding beyond `bytes`, all rows are readable and writable.
 *
 *   combineRows   out = addend + sum over r < count of factors[r] * row r
 *   adoptRow      with u for the unit vector of column `pivot`, and a = scale * (incoming + u):
 *                 row r += row r [pivot] * a for r < count, then row `pivot`, all zero before, becomes a + u
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
