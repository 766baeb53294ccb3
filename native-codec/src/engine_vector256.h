/** The common part of the engines with 32-byte x86 vectors: moves and additions. Needs AVX2. */
#ifndef TRIBUTARY_ENGINE_VECTOR256_H_
#define TRIBUTARY_ENGINE_VECTOR256_H_

#include <immintrin.h>

#include "engine_block.h"

namespace tributary {
namespace {

struct Vector256 {
  using Vector = __m256i;
  static constexpr size_t kWidth = 32;

  static TRIBUTARY_INLINE Vector zero() { return _mm256_setzero_si256(); }
  static TRIBUTARY_INLINE Vector load(const uint8_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static TRIBUTARY_INLINE void store(uint8_t* to, Vector vector) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), vector);
  }
  static TRIBUTARY_INLINE Vector add(Vector a, Vector b) { return _mm256_xor_si256(a, b); }
};

}  // namespace
}  // namespace tributary

#endif  // TRIBUTARY_ENGINE_VECTOR256_H_
