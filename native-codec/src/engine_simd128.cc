/**
 * WebAssembly SIMD128: nibble tables looked up with i8x16.swizzle; with relaxed SIMD by i8x16.relaxed_swizzle, one
 * instruction on processors where the former takes two, and the same for indices below 16, which these all are.
 */
#if defined(__wasm_simd128__)

#include <wasm_simd128.h>

#include <cstring>

#include "engine_block.h"
#include "gf256.h"

namespace tributary {
namespace {

#if defined(__wasm_relaxed_simd__)
constexpr const char* kName = "relaxed-simd";
inline v128_t lookUp(v128_t table, v128_t indices) { return wasm_i8x16_relaxed_swizzle(table, indices); }
#else
constexpr const char* kName = "simd128";
inline v128_t lookUp(v128_t table, v128_t indices) { return wasm_i8x16_swizzle(table, indices); }
#endif

struct Simd128 {
  using Vector = v128_t;
  struct Split {
    v128_t low, high;
  };
  struct Factor {
    v128_t low, high;
  };
  static constexpr size_t kWidth = 16;
  static constexpr int kSourcesPerStep = 1;
  static constexpr int kOutputs = 3;
  static constexpr int kVectors[] = {0, 2, 2, 2};

  static TRIBUTARY_INLINE Vector zero() { return wasm_i64x2_const_splat(0); }
  static TRIBUTARY_INLINE Vector load(const uint8_t* from) { return wasm_v128_load(from); }
  static TRIBUTARY_INLINE void store(uint8_t* to, Vector vector) { wasm_v128_store(to, vector); }
  static TRIBUTARY_INLINE Vector loadPart(const uint8_t* from, size_t bytes) {
    uint8_t whole[kWidth] = {};
    memcpy(whole, from, bytes);
    return wasm_v128_load(whole);
  }
  static TRIBUTARY_INLINE void storePart(uint8_t* to, Vector vector, size_t bytes) {
    uint8_t whole[kWidth];
    wasm_v128_store(whole, vector);
    memcpy(to, whole, bytes);
  }
  static TRIBUTARY_INLINE Vector add(Vector a, Vector b) { return wasm_v128_xor(a, b); }
  static TRIBUTARY_INLINE Split split(Vector vector) {
    return {wasm_v128_and(vector, wasm_i8x16_const_splat(0x0F)), wasm_u8x16_shr(vector, 4)};
  }
  static TRIBUTARY_INLINE Factor factor(uint8_t coefficient) {
    const gf256::NibbleTable& table = gf256::kNibbleTables.of[coefficient];
    return {wasm_v128_load(table.low), wasm_v128_load(table.high)};
  }
  static TRIBUTARY_INLINE Vector multiplyAdd(Vector sum, const Factor& factor, const Split& part) {
    const Vector product = add(lookUp(factor.low, part.low), lookUp(factor.high, part.high));
    return add(sum, product);
  }
};

bool isSupported() { return true; }

}  // namespace

extern const Engine kEngineSimd128 = {kName, isSupported, multiplyBlocked<Simd128>, combineRowsBlocked<Simd128>,
                                    adoptRowBlocked<Simd128>};

}  // namespace tributary

#endif
