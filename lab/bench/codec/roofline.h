/**
 * What the vector unit could do at best, to weigh the engines by: multiply-adds of bytes by `vgf2p8affineqb` and
 * ternary XOR on 512-bit registers, or, on a processor without GFNI, by nibble tables, two `vpshufb` and two XORs on
 * 256-bit ones. From registers alone (the bound of a batch, whose sources are loaded once for many outputs) and with a
 * load from the L1 cache for each, which tables also need split into nibbles (the bound of one output). Nothing useful
 * is computed.
 */
#ifndef TRIBUTARY_LAB_BENCH_ROOFLINE_H_
#define TRIBUTARY_LAB_BENCH_ROOFLINE_H_

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#define TRIBUTARY_BENCH_HAS_ROOFLINE 1
#define TRIBUTARY_BENCH_GFNI512 __attribute__((target("avx512f,avx512bw,gfni"), noinline))
#define TRIBUTARY_BENCH_AVX2 __attribute__((target("avx2"), noinline))
#endif

namespace bench {

/** Fits every L1 data cache. */
inline constexpr size_t kRooflineBytes = 12288;
/** At least `multiplyAdds` of them, on `source` (kRooflineBytes, 64-byte aligned) or on registers. */
using Roofline = void(const uint8_t* source, size_t multiplyAdds);

#ifdef TRIBUTARY_BENCH_HAS_ROOFLINE
template <bool kLoads>
TRIBUTARY_BENCH_GFNI512 void multiplyAddByMatrices(const uint8_t* source, size_t multiplyAdds) {
  constexpr size_t kChains = 12;
  constexpr size_t kChainBytes = 64;
  constexpr size_t kStepBytes =
      2 * kChains * kChainBytes;  // a pair of products is merged by one ternary XOR, as the engine does it
  static_assert(kRooflineBytes % kStepBytes == 0);
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

template <bool kLoads>
TRIBUTARY_BENCH_AVX2 void multiplyAddByTables(const uint8_t* source, size_t multiplyAdds) {
  constexpr size_t kChains = 8;
  constexpr size_t kChainBytes = 32;
  constexpr size_t kStepBytes = kChains * kChainBytes;
  static_assert(kRooflineBytes % kStepBytes == 0);
  __m256i sums[kChains];
#pragma GCC unroll 8
  for (size_t i = 0; i < kChains; i++) sums[i] = _mm256_setzero_si256();
  const __m256i nibble = _mm256_set1_epi8(0x0F);
  const __m256i table = _mm256_set1_epi8(3);
  __m256i low = nibble;
  __m256i high = nibble;
  size_t offset = 0;
  for (size_t done = 0; done < multiplyAdds; done += kStepBytes) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kChains; i++) {
      if constexpr (kLoads) {
        const __m256i value = _mm256_load_si256(reinterpret_cast<const __m256i*>(source + offset + i * kChainBytes));
        low = _mm256_and_si256(value, nibble);
        high = _mm256_and_si256(_mm256_srli_epi64(value, 4), nibble);
      }
      asm volatile("" : "+x"(low), "+x"(high));  // or the compiler would look up once for all
      __m256i first = _mm256_shuffle_epi8(table, low);
      __m256i second = _mm256_shuffle_epi8(table, high);
      asm volatile("" : "+x"(first), "+x"(second));
      sums[i] = _mm256_xor_si256(sums[i], _mm256_xor_si256(first, second));
    }
    if constexpr (kLoads) offset = offset + kStepBytes == kRooflineBytes ? 0 : offset + kStepBytes;
  }
#pragma GCC unroll 8
  for (size_t i = 0; i < kChains; i++) asm volatile("" : : "x"(sums[i]));
}
#endif

/** Of this processor's fastest engine, with a load for each multiply-add or from registers; nullptr where there is
 * none. */
inline Roofline* findRoofline(bool loads) {
#ifdef TRIBUTARY_BENCH_HAS_ROOFLINE
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("gfni")) {
    return loads ? multiplyAddByMatrices<true> : multiplyAddByMatrices<false>;
  }
  if (__builtin_cpu_supports("avx2") && !__builtin_cpu_supports("gfni")) {
    return loads ? multiplyAddByTables<true> : multiplyAddByTables<false>;
  }
#endif
  return nullptr;
}

}  // namespace bench

#endif  // TRIBUTARY_LAB_BENCH_ROOFLINE_H_
