/**
 * What the vector unit could do at best, to weigh the engines by: multiply-adds of bytes by `vgf2p8affineqb` and ternary XOR on
 * 512-bit registers, from registers alone (the bound of a batch, whose sources are loaded once for many outputs) and
 * with a load from the L1 cache for each (the bound of one output). Nothing useful is computed.
 */
#ifndef TRIBUTARY_LAB_BENCH_ROOFLINE_H_
#define TRIBUTARY_LAB_BENCH_ROOFLINE_H_

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#define TRIBUTARY_BENCH_HAS_ROOFLINE 1
#define TRIBUTARY_BENCH_TARGET __attribute__((target("avx512f,avx512bw,gfni"), noinline))
#endif

namespace bench {

#ifdef TRIBUTARY_BENCH_HAS_ROOFLINE
inline constexpr size_t kChains = 12;
inline constexpr size_t kChainBytes = 64;
/** A pair of products is merged by one ternary XOR, as the engine does it. */
inline constexpr size_t kStepBytes = 2 * kChains * kChainBytes;
/** Fits every L1 data cache. */
inline constexpr size_t kRooflineBytes = 8 * kStepBytes;

inline bool hasRoofline() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("gfni");
}

/** At least `multiplyAdds` of them, on `source` (kRooflineBytes, 64-byte aligned) or, with nullptr, on registers. */
template <bool kLoads>
TRIBUTARY_BENCH_TARGET void multiplyAddAtPeak(const uint8_t* source, size_t multiplyAdds) {
  __m512i sums[kChains];
#pragma GCC unroll 12
  for (size_t i = 0; i < kChains; i++) sums[i] = _mm512_setzero_si512();
  const __m512i factor = _mm512_set1_epi64(0x0102040810204081);
  __m512i value = _mm512_set1_epi8(3);
  size_t offset = 0;
  for (size_t done = 0; done < multiplyAdds; done += kStepBytes) {
#pragma GCC unroll 12
    for (size_t i = 0; i < kChains; i++) {
      const uint8_t* pair = source + offset + i * 2 * kChainBytes;
      asm volatile("" : "+v"(value));  // or the compiler would multiply once for all
      __m512i first = _mm512_gf2p8affine_epi64_epi8(kLoads ? _mm512_load_si512(pair) : value, factor, 0);
      asm volatile("" : "+v"(value));
      __m512i second = _mm512_gf2p8affine_epi64_epi8(kLoads ? _mm512_load_si512(pair + kChainBytes) : value, factor, 0);
      asm volatile("" : "+v"(first), "+v"(second));
      sums[i] = _mm512_ternarylogic_epi64(sums[i], first, second, 0x96);
    }
    if constexpr (kLoads) offset = offset + kStepBytes == kRooflineBytes ? 0 : offset + kStepBytes;
  }
#pragma GCC unroll 12
  for (size_t i = 0; i < kChains; i++) asm volatile("" : : "v"(sums[i]));
}
#endif

}  // namespace bench

#endif  // TRIBUTARY_LAB_BENCH_ROOFLINE_H_
