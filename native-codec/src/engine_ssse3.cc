/** The engine for x86 SSSE3: nibble tables, looked up by pshufb, 16 bytes at a time. Compiled with -mssse3. */
#if defined(__SSSE3__)

#include <tmmintrin.h>

#include "engine_subfield.h"
#include "gf256.h"

namespace tributary {
namespace {

struct Ssse3 {
  using Vector = __m128i;
  struct Split {
    __m128i low, high;
  };
  struct Factor {
    __m128i low, high;
  };
  static constexpr size_t kWidth = 16;
  static constexpr int kSourcesPerStep = 1;
  static constexpr int kOutputs = 4;
  static constexpr int kVectors[] = {0, 4, 2, 2, 2};
  static constexpr int kRowVectors = 4;

  static TRIBUTARY_INLINE Vector zero() { return _mm_setzero_si128(); }
  static TRIBUTARY_INLINE Vector load(const uint8_t* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
  static TRIBUTARY_INLINE void store(uint8_t* to, Vector vector) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), vector);
  }
  static TRIBUTARY_INLINE Vector add(Vector a, Vector b) { return _mm_xor_si128(a, b); }
  static TRIBUTARY_INLINE Split split(Vector vector) {
    const __m128i nibble = _mm_set1_epi8(0x0F);
    return {_mm_and_si128(vector, nibble), _mm_and_si128(_mm_srli_epi64(vector, 4), nibble)};
  }
  /** An aligned load, so that a look-up can use the memory as its operand. */
  static TRIBUTARY_INLINE Vector loadNibbles(const uint8_t* from) {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(from));
  }
  static TRIBUTARY_INLINE Vector table(const uint8_t* bytes) {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
  }
  static TRIBUTARY_INLINE Vector lookUp(Vector table, Vector nibbles) { return _mm_shuffle_epi8(table, nibbles); }
  static TRIBUTARY_INLINE Factor factor(uint8_t coefficient) {
    const gf256::NibbleTable& of = gf256::kNibbleTables.of[coefficient];
    return {table(of.low), table(of.high)};
  }
  static TRIBUTARY_INLINE Vector multiplyAdd(Vector sum, const Factor& factor, const Split& part) {
    return add(sum, add(lookUp(factor.low, part.low), lookUp(factor.high, part.high)));
  }
};

bool isSupported() { return __builtin_cpu_supports("ssse3"); }

}  // namespace

extern const Engine kEngineSsse3 = {"ssse3",
                                    isSupported,
                                    multiplyByTables<Ssse3>,
                                    sumRowsBlocked<Ssse3>,
                                    combineRowsBlocked<Ssse3>,
                                    adoptRowBlocked<Ssse3>};

}  // namespace tributary

#endif
