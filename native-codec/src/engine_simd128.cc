/**
 * The engine for WebAssembly SIMD128. It has no multiplication of bytes, and a table look-up by i8x16.swizzle is three
 * instructions on x86. So a product consists of XORs, by the method of four Russians (Arlazarov, Dinic, Kronrod and
 * Faradzhev, 1970). The engine makes all sixteen sums of each four sources once, for all outputs. Bit d of the four
 * coefficients selects one of these sums. The engine adds the sums that bit d selects in all groups, and joins the
 * results for d = 7 .. 0 by Horner's rule. A multiply-add takes two loads and two XORs.
 *
 * Sums do not pay for products of one or two outputs, nor for eliminations, whose rows are short. These use nibble
 * tables: by i8x16.swizzle, or by i8x16.relaxed_swizzle, which is one instruction on x86 and gives the same result for
 * indices below 16.
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

template <class Word>
TRIBUTARY_INLINE void copyWord(uint8_t*& to, const uint8_t*& from) {
  memcpy(to, from, sizeof(Word));
  to += sizeof(Word);
  from += sizeof(Word);
}

/** Copies a few bytes. A call of memcpy leaves the module, which takes longer. */
__attribute__((noinline)) void copyPart(uint8_t* to, const uint8_t* from, size_t bytes) {
  for (; bytes >= sizeof(v128_t); bytes -= sizeof(v128_t)) copyWord<v128_t>(to, from);
  if ((bytes & 8) != 0) copyWord<uint64_t>(to, from);
  if ((bytes & 4) != 0) copyWord<uint32_t>(to, from);
  if ((bytes & 2) != 0) copyWord<uint16_t>(to, from);
  if ((bytes & 1) != 0) *to = *from;
}

/** The vector unit with nibble tables, for engine_block.h. */
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
  static constexpr int kOutputs = 2;
  static constexpr int kVectors[] = {0, 2, 2};

  static TRIBUTARY_INLINE Vector zero() { return wasm_i64x2_const_splat(0); }
  static TRIBUTARY_INLINE Vector load(const uint8_t* from) { return wasm_v128_load(from); }
  static TRIBUTARY_INLINE void store(uint8_t* to, Vector vector) { wasm_v128_store(to, vector); }
  static TRIBUTARY_INLINE Vector loadPart(const uint8_t* from, size_t bytes) {
    uint8_t whole[kWidth];
    copyPart(whole, from, bytes);
    return wasm_v128_load(whole);
  }
  static TRIBUTARY_INLINE void storePart(uint8_t* to, Vector vector, size_t bytes) {
    uint8_t whole[kWidth];
    wasm_v128_store(whole, vector);
    copyPart(to, whole, bytes);
  }
  static TRIBUTARY_INLINE Vector add(Vector a, Vector b) { return wasm_v128_xor(a, b); }
  /** Shifts 16-bit lanes, because V8 makes five instructions of a shift of bytes. */
  static TRIBUTARY_INLINE Split split(Vector vector) {
    const v128_t nibble = wasm_i8x16_const_splat(0x0F);
    return {wasm_v128_and(vector, nibble), wasm_v128_and(wasm_u16x8_shr(vector, 4), nibble)};
  }
  static TRIBUTARY_INLINE Factor factor(uint8_t coefficient) {
    const gf256::NibbleTable& table = gf256::kNibbleTables.of[coefficient];
    return {wasm_v128_load(table.low), wasm_v128_load(table.high)};
  }
  static TRIBUTARY_INLINE Vector multiplyAdd(Vector sum, const Factor& factor, const Split& part) {
    const Vector product = wasm_v128_xor(lookUp(factor.low, part.low), lookUp(factor.high, part.high));
    return wasm_v128_xor(sum, product);
  }
};

constexpr size_t kWidth = Simd128::kWidth;
/** Vectors of a strip. V8 keeps so many sums in registers. */
constexpr size_t kVectors = 8;
constexpr size_t kSumBytes = kVectors * kWidth;
/** Sources of one table of sums. */
constexpr size_t kGroupSources = 4;
constexpr size_t kGroupSums = 1 << kGroupSources;
/** Groups in one pass. Their tables (20 KB) stay in the nearest cache. */
constexpr size_t kGroupsMax = 10;
/** Outputs in one pass. */
constexpr size_t kOutputsMax = 32;
constexpr size_t kDigits = 8;

/** The tables of one strip. Entry 0 of each stays zero. They are global, because a module has one thread. */
alignas(64) uint8_t sumTables[kGroupsMax][kGroupSums][kSumBytes];
/** Pointers to the sums that an output adds: for each output, digits 7 to 0, and for each digit all groups. */
const uint8_t* lookUps[kOutputsMax * kDigits * kGroupsMax];

/** The part of a product that one set of tables serves. */
struct Pass {
  uint8_t* const* outputs;
  size_t outputCount;
  /** Like Product::addends. */
  const uint8_t* const* addends;
  const uint8_t* const* sources;
  size_t sourceCount;
  size_t groupCount;
};

/** The coefficients of a group's sources, one in each byte. A missing source has 0. */
uint32_t coefficientsOfGroup(const uint8_t* coefficients, size_t left) {
  uint32_t word = 0;
  if (left >= kGroupSources) {
    memcpy(&word, coefficients, kGroupSources);
    return word;
  }
  while (left-- > 0) word = word << 8 | coefficients[left];
  return word;
}

void planLookUps(const Pass& pass, const uint8_t* coefficients, size_t stride) {
  const uint8_t** of = lookUps;
  for (size_t o = 0; o < pass.outputCount; o++, of += kDigits * pass.groupCount, coefficients += stride) {
    for (size_t g = 0; g < pass.groupCount; g++) {
      const size_t first = g * kGroupSources;
      uint32_t word = coefficientsOfGroup(coefficients + first, pass.sourceCount - first);
      for (size_t d = kDigits; d-- > 0; word >>= 1) {
        // Gathers the lowest bit of each of the four bytes in bits 24 to 27.
        const uint32_t sum = (word & 0x01010101) * 0x01020408 >> 24;
        of[d * pass.groupCount + g] = sumTables[g][sum];
      }
    }
  }
}

/** Makes all sums of each group's sources, `vectors` vectors from `offset` on. No digit selects a missing source. */
void makeSums(const Pass& pass, size_t offset, size_t vectors) {
  for (size_t g = 0; g < pass.groupCount; g++) {
    const uint8_t* sources[kGroupSources];
    for (size_t i = 0; i < kGroupSources; i++) {
      const size_t s = g * kGroupSources + i;
      sources[i] = pass.sources[s < pass.sourceCount ? s : 0] + offset;
    }
    for (size_t at = 0; at < vectors * kWidth; at += kWidth) {
      v128_t sums[kGroupSums] = {Simd128::zero()};
#pragma clang loop unroll(full)
      for (size_t k = 1; k < kGroupSums; k++) {
        const int top = 31 - __builtin_clz(k);
        sums[k] = wasm_v128_load(sources[top] + at);
        if (k != size_t{1} << top) sums[k] = wasm_v128_xor(sums[size_t{1} << top], sums[k - (size_t{1} << top)]);
        wasm_v128_store(sumTables[g][k] + at, sums[k]);
      }
    }
  }
}

/** Hides a value from the compiler, which would make byte shifts of additions. Byte shifts are slow in V8. */
TRIBUTARY_INLINE v128_t opaque(v128_t value) {
  asm("" : "+r"(value));
  return value;
}

TRIBUTARY_INLINE v128_t doubled(v128_t bytes, v128_t zero) {
  const v128_t carry = wasm_v128_and(wasm_i8x16_gt(zero, bytes), wasm_i8x16_const_splat(gf256::kPolynomial & 0xFF));
  return wasm_v128_xor(wasm_i8x16_add(bytes, opaque(bytes)), carry);
}

/** Computes one output's strip: out = (addend +) sum over digits d of 2^d times the sum of the look-ups for d. */
__attribute__((noinline)) void addUp(uint8_t* out, const uint8_t* addend, const uint8_t* const* lookUp,
                                     size_t groupCount) {
  const v128_t zero = opaque(Simd128::zero());
  v128_t sums[kVectors] = {};
  for (size_t d = kDigits;;) {
#pragma clang loop unroll_count(3)
    for (const uint8_t* const* const end = lookUp + groupCount; lookUp != end; lookUp++) {
      for (size_t v = 0; v < kVectors; v++) sums[v] = wasm_v128_xor(sums[v], wasm_v128_load(*lookUp + v * kWidth));
    }
    if (--d == 0) break;
    for (size_t v = 0; v < kVectors; v++) sums[v] = doubled(sums[v], zero);
  }
  if (addend != nullptr) {
    for (size_t v = 0; v < kVectors; v++) sums[v] = wasm_v128_xor(sums[v], wasm_v128_load(addend + v * kWidth));
  }
  for (size_t v = 0; v < kVectors; v++) wasm_v128_store(out + v * kWidth, sums[v]);
}

void multiplyPass(const Pass& pass, size_t byteCount) {
  for (size_t offset = 0; offset < byteCount; offset += kSumBytes) {
    const size_t left = byteCount - offset;
    const uint8_t* const* lookUp = lookUps;
    makeSums(pass, offset, left < kSumBytes ? (left + kWidth - 1) / kWidth : kVectors);
    for (size_t o = 0; o < pass.outputCount; o++, lookUp += kDigits * pass.groupCount) {
      uint8_t* const out = pass.outputs[o] + offset;
      const uint8_t* const addend = pass.addends == nullptr ? nullptr : pass.addends[o] + offset;
      if (left >= kSumBytes) {
        addUp(out, addend, lookUp, pass.groupCount);
        continue;
      }
      uint8_t part[kSumBytes];
      if (addend != nullptr) copyPart(part, addend, left);
      addUp(part, addend == nullptr ? nullptr : part, lookUp, pass.groupCount);
      copyPart(out, part, left);
    }
  }
}

size_t least(size_t a, size_t b) { return a < b ? a : b; }
size_t groupsOf(size_t sourceCount) { return (sourceCount + kGroupSources - 1) / kGroupSources; }

/**
 * Makes passes of equal size, because Horner's rule costs the same for few sources as for many. Each pass adds to the
 * outputs of the last one.
 */
void multiply(const Product& product) {
  if (product.outputCount <= Simd128::kOutputs) return multiplyBlocked<Simd128>(product);
  const size_t groups = groupsOf(product.sourceCount);
  const size_t passes = (groups + kGroupsMax - 1) / kGroupsMax;
  const size_t sourcesPerPass = passes == 0 ? 1 : (groups + passes - 1) / passes * kGroupSources;
  for (size_t o = 0; o < product.outputCount; o += kOutputsMax) {
    const size_t outputCount = least(product.outputCount - o, kOutputsMax);
    const uint8_t* const* addends = product.addends == nullptr ? nullptr : product.addends + o;
    size_t s = 0;
    do {
      const size_t sourceCount = least(product.sourceCount - s, sourcesPerPass);
      const Pass pass = {product.outputs + o, outputCount, addends,
                         product.sources + s, sourceCount, groupsOf(sourceCount)};
      planLookUps(pass, product.coefficients + o * product.coefficientStride + s, product.coefficientStride);
      multiplyPass(pass, product.bytes);
      addends = pass.outputs;
      s += sourcesPerPass;
    } while (s < product.sourceCount);
  }
}

void sumRows(uint8_t* out, const uint8_t* rows, size_t stride, const uint8_t* factors, size_t count, size_t bytes,
             bool fromEnd) {
  sumRowsBy(multiplyBlocked<Simd128>, out, rows, stride, factors, count, bytes, fromEnd);
}

bool isSupported() { return true; }

}  // namespace

extern const Engine kEngineSimd128 = {
    kName, isSupported, multiply, sumRows, combineRowsBlocked<Simd128>, adoptRowBlocked<Simd128>};

}  // namespace tributary

#endif
