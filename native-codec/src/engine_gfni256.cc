/**
 * The engine for x86 AVX2 with GFNI, on processors without AVX-512: 8x8 bit matrices as in engine_gfni512.cc, 32 bytes
 * at a time. Compiled with -mavx2 -mgfni. Any compiler can build it, because it has no embedded broadcasts.
 */
#if defined(__AVX2__) && defined(__GFNI__)

#include "engine_vector256.h"
#include "gf256.h"

namespace tributary {
namespace {

struct Gfni256 : Vector256 {
  using Split = __m256i;
  using Factor = __m256i;
  static constexpr int kSourcesPerStep = 1;
  static constexpr int kOutputs = 4;
  static constexpr int kVectors[] = {0, 4, 4, 2, 2};
  static constexpr int kRowVectors = 11;

  static TRIBUTARY_INLINE Split split(Vector vector) { return vector; }
  static TRIBUTARY_INLINE Factor factor(uint8_t coefficient) {
    return _mm256_set1_epi64x(static_cast<int64_t>(gf256::kBitMatrices.of[coefficient]));
  }
  static TRIBUTARY_INLINE Vector multiplyAdd(Vector sum, Factor factor, Split part) {
    return add(sum, _mm256_gf2p8affine_epi64_epi8(part, factor, 0));
  }
};

bool isSupported() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("gfni"); }

}  // namespace

extern const Engine kEngineGfni256 = {"gfni256",
                                      isSupported,
                                      multiplyBlocked<Gfni256>,
                                      sumRowsBlocked<Gfni256>,
                                      combineRowsBlocked<Gfni256>,
                                      adoptRowBlocked<Gfni256>};

}  // namespace tributary

#endif
