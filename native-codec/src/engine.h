/** What an engine is: a matrix product over GF(2^8), and whether this processor can run it. */
#ifndef TRIBUTARY_ENGINE_H_
#define TRIBUTARY_ENGINE_H_

#include <cstddef>
#include <cstdint>

namespace tributary {

/** Rows that are sources are readable (not necessarily zero) up to the next multiple of this many bytes. */
inline constexpr size_t kRowPadding = 64;

/**
 * output[o][i] = sum over s of coefficients[o * coefficientStride + s] * source[s][i], for i < bytes;
 * with `accumulate` the sum is added to what the output holds. Outputs are written, and read, for exactly `bytes`
 * bytes, at any alignment; no output overlaps a source or another output.
 */
struct Product {
  uint8_t* const* outputs;
  size_t outputCount;
  const uint8_t* const* sources;
  size_t sourceCount;
  const uint8_t* coefficients;
  size_t coefficientStride;
  size_t bytes;
  bool accumulate;
};

struct Engine {
  const char* name;
  bool (*isSupported)();
  void (*multiply)(const Product&);
};

extern const Engine kEngineReference;
extern const Engine kEngineScalar;
extern const Engine kEngineSsse3;
extern const Engine kEngineAvx2;
extern const Engine kEngineGfni512;
extern const Engine kEngineSimd128;

}  // namespace tributary

#endif  // TRIBUTARY_ENGINE_H_
