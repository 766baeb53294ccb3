/** The engine for x86 AVX2: nibble tables, looked up by vpshufb, 32 bytes at a time. Compiled with -mavx2. */
#if defined(__AVX2__)

#include "engine_subfield.h"
#include "engine_vector256.h"
#include "gf256.h"

namespace tributary {
namespace {

struct Avx2 : Vector256 {
  struct Split {
    __m256i low, high;
  };
  struct Factor {
    __m256i low, high;
  };
  static constexpr int kSourcesPerStep = 1;
  static constexpr int kOutputs = 4;
  static constexpr int kVectors[] = {0, 4, 4, 2, 2};
  static constexpr int kRowVectors = 4;

  /** Returns the vector as a value that GCC knows nothing about. */
  static TRIBUTARY_INLINE Vector inRegister(Vector vector) {
#if defined(__GNUC__) && !defined(__clang__)
    asm("" : "+x"(vector));
#endif
    return vector;
  }
  static TRIBUTARY_INLINE Split split(Vector vector) {
    const __m256i nibble = _mm256_set1_epi8(0x0F);
    return {_mm256_and_si256(vector, nibble), _mm256_and_si256(_mm256_srli_epi64(vector, 4), nibble)};
  }
  /** Copies the table to both halves, because vpshufb looks up within each half. */
  static TRIBUTARY_INLINE Vector table(const uint8_t* bytes) {
    return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(bytes)));
  }
  /** Keeps the vector in a register. Otherwise GCC loads it again for each look-up. */
  static TRIBUTARY_INLINE Vector loadNibbles(const uint8_t* from) { return inRegister(load(from)); }
  static TRIBUTARY_INLINE Vector lookUp(Vector table, Vector nibbles) { return _mm256_shuffle_epi8(table, nibbles); }
  static TRIBUTARY_INLINE Factor factor(uint8_t coefficient) {
    const gf256::NibbleTable& of = gf256::kNibbleTables.of[coefficient];
    return {table(of.low), table(of.high)};
  }
  static TRIBUTARY_INLINE Vector multiplyAdd(Vector sum, const Factor& factor, const Split& part) {
    // GCC would add the two look-ups first, which takes one register more than a block leaves.
    return add(inRegister(add(sum, lookUp(factor.low, part.low))), lookUp(factor.high, part.high));
  }
};

bool isSupported() { return __builtin_cpu_supports("avx2"); }

}  // namespace

extern const Engine kEngineAvx2 = {
    "avx2", isSupported, multiplyByTables<Avx2>, sumRowsBlocked<Avx2>, combineRowsBlocked<Avx2>, adoptRowBlocked<Avx2>};

}  // namespace tributary

#endif
