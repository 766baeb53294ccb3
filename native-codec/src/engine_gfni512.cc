/**
 * The engine for x86 AVX-512 with GFNI. Multiplication by a constant is linear over GF(2), so it is an 8x8 bit matrix.
 * vgf2p8affineqb multiplies 64 bytes by such a matrix at once. (gf2p8mulb does not fit, because its polynomial is
 * 0x11B.)
 *
 * Compiled with -mgfni -mavx512f -mavx512bw, by GCC only: clang mis-assembles vgf2p8affineqb with an embedded broadcast
 * and a displacement. A build by clang does not have this engine.
 */
#if defined(__GFNI__) && defined(__AVX512BW__) && !defined(__clang__)

#include <immintrin.h>

#include "engine_block.h"
#include "gf256.h"

namespace tributary {
namespace {

struct Gfni512 {
  using Vector = __m512i;
  using Split = __m512i;
  using Factor = __m512i;
  static constexpr size_t kWidth = 64;
  static constexpr int kSourcesPerStep = 2;
  static constexpr int kOutputs = 4;
  static constexpr int kVectors[] = {0, 8, 4, 4, 4};
  static constexpr int kRowVectors = 22;

  static TRIBUTARY_INLINE Vector zero() { return _mm512_setzero_si512(); }
  static TRIBUTARY_INLINE Vector load(const uint8_t* from) { return _mm512_loadu_si512(from); }
  static TRIBUTARY_INLINE void store(uint8_t* to, Vector vector) { _mm512_storeu_si512(to, vector); }
  static TRIBUTARY_INLINE __mmask64 first(size_t bytes) { return ~uint64_t{0} >> (64 - bytes); }
  static TRIBUTARY_INLINE Vector loadPart(const uint8_t* from, size_t bytes) {
    return _mm512_maskz_loadu_epi8(first(bytes), from);
  }
  static TRIBUTARY_INLINE void storePart(uint8_t* to, Vector vector, size_t bytes) {
    _mm512_mask_storeu_epi8(to, first(bytes), vector);
  }
  static TRIBUTARY_INLINE Vector add(Vector a, Vector b) { return _mm512_xor_si512(a, b); }
  static TRIBUTARY_INLINE Split split(Vector vector) { return vector; }
  static TRIBUTARY_INLINE Factor factor(uint8_t coefficient) {
    return _mm512_set1_epi64(static_cast<int64_t>(gf256::kBitMatrices.of[coefficient]));
  }
  static TRIBUTARY_INLINE Vector multiplyAdd(Vector sum, Factor factor, Split part) {
    return add(sum, _mm512_gf2p8affine_epi64_epi8(part, factor, 0));
  }
  /** Truth table 0x96 is a three-way XOR in one instruction. */
  static TRIBUTARY_INLINE Vector multiplyAdd2(Vector sum, Factor f, Split x, Factor g, Split y) {
    return _mm512_ternarylogic_epi64(sum, _mm512_gf2p8affine_epi64_epi8(x, f, 0),
                                     _mm512_gf2p8affine_epi64_epi8(y, g, 0), 0x96);
  }
};

bool isSupported() {
  return __builtin_cpu_supports("gfni") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
}

}  // namespace

extern const Engine kEngineGfni512 = {"gfni512",
                                      isSupported,
                                      multiplyBlocked<Gfni512>,
                                      sumRowsBlocked<Gfni512>,
                                      combineRowsBlocked<Gfni512>,
                                      adoptRowBlocked<Gfni512>};

}  // namespace tributary

#endif
