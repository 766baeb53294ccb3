/**
 * The operations of engine.h for any vector unit, with sums that stay in registers. An engine file describes its unit
 * by a struct V. V is in an unnamed namespace, so that each instantiation stays in that file, under its compiler flags:
 *
 *   Vector, kWidth             a register, and its size in bytes
 *   zero, load, store          whole vectors, at any alignment
 *   loadPart, storePart        the first `bytes` bytes, 1..kWidth, and no others. Optional: for units with masks.
 *   Split, split(Vector)       a source vector, prepared once for all outputs
 *   Factor, factor(uint8_t)    a coefficient, prepared once for all vectors of a block
 *   multiplyAdd(sum, f, x)     sum + f * x
 *   multiplyAdd2(sum, f, x, g, y)   sum + f * x + g * y
 *   kSourcesPerStep            1 or 2: which of the last two the inner loop uses
 *   kOutputs                   the largest number of outputs of a block
 *   kVectors[outputs]          the vectors of a block with 1..kOutputs outputs
 *   kRowVectors                the vectors of a block of a sum of rows
 *
 * A block keeps outputs x vectors sums in registers while it passes over all sources once. Blocks walk the columns in
 * strips. All outputs of a strip come before the next strip, so that the strip's sources stay in the nearest cache. A
 * sum of rows needs no strips: its blocks have one output and are as wide as the registers allow.
 */
#ifndef TRIBUTARY_ENGINE_BLOCK_H_
#define TRIBUTARY_ENGINE_BLOCK_H_

#include <cstring>

#include "engine.h"

#if defined(__GNUC__)
#define TRIBUTARY_INLINE inline __attribute__((always_inline))
#define TRIBUTARY_OUT_OF_LINE __attribute__((noinline))
#define TRIBUTARY_UNROLL _Pragma("GCC unroll 32")
#else
#define TRIBUTARY_INLINE inline
#define TRIBUTARY_OUT_OF_LINE
#define TRIBUTARY_UNROLL
#endif

namespace tributary {

/** The width of a strip: a multiple of the width of every block of a matrix product. */
constexpr size_t kStripBytes = 512;

/**
 * Hides the pointer's origin from the compiler, so that one register serves all vectors of a row. Otherwise GCC keeps
 * an offset for each vector and runs out of registers.
 */
TRIBUTARY_INLINE const uint8_t* asOneRegister(const uint8_t* pointer) {
#if defined(__GNUC__) && !defined(__clang__)
  asm("" : "+r"(pointer));
#endif
  return pointer;
}

template <class V>
TRIBUTARY_INLINE typename V::Vector loadPart(const uint8_t* from, size_t bytes) {
  if constexpr (requires { &V::loadPart; }) {
    return V::loadPart(from, bytes);
  } else {
    uint8_t whole[V::kWidth] = {};
    memcpy(whole, from, bytes);
    return V::load(whole);
  }
}

template <class V>
TRIBUTARY_INLINE void storePart(uint8_t* to, typename V::Vector vector, size_t bytes) {
  if constexpr (requires { &V::storePart; }) {
    V::storePart(to, vector, bytes);
  } else {
    uint8_t whole[V::kWidth];
    V::store(whole, vector);
    memcpy(to, whole, bytes);
  }
}

template <class V, int kOutputs, int kVectors>
struct ProductBlock {
  static constexpr size_t kBytes = kVectors * V::kWidth;

  typename V::Vector sums[kOutputs][kVectors];

  static TRIBUTARY_INLINE void splitSource(typename V::Split (&parts)[kVectors], const uint8_t* source) {
    source = asOneRegister(source);
    TRIBUTARY_UNROLL
    for (int v = 0; v < kVectors; v++) parts[v] = V::split(V::load(source + v * V::kWidth));
  }

  TRIBUTARY_INLINE void addSource(const uint8_t* source, const uint8_t* coefficients, size_t stride) {
    typename V::Split parts[kVectors];
    splitSource(parts, source);
    TRIBUTARY_UNROLL
    for (int o = 0; o < kOutputs; o++) {
      const typename V::Factor factor = V::factor(coefficients[o * stride]);
      TRIBUTARY_UNROLL
      for (int v = 0; v < kVectors; v++) sums[o][v] = V::multiplyAdd(sums[o][v], factor, parts[v]);
    }
  }

  TRIBUTARY_INLINE void addSourcePair(const uint8_t* first, const uint8_t* second, const uint8_t* ofFirst,
                                      const uint8_t* ofSecond, size_t stride) {
    typename V::Split x[kVectors];
    typename V::Split y[kVectors];
    splitSource(x, first);
    splitSource(y, second);
    TRIBUTARY_UNROLL
    for (int o = 0; o < kOutputs; o++) {
      const typename V::Factor f = V::factor(ofFirst[o * stride]);
      const typename V::Factor g = V::factor(ofSecond[o * stride]);
      TRIBUTARY_UNROLL
      for (int v = 0; v < kVectors; v++) sums[o][v] = V::multiplyAdd2(sums[o][v], f, x[v], g, y[v]);
    }
  }

  TRIBUTARY_INLINE void clear() {
    TRIBUTARY_UNROLL
    for (int o = 0; o < kOutputs; o++) {
      TRIBUTARY_UNROLL
      for (int v = 0; v < kVectors; v++) sums[o][v] = V::zero();
    }
  }

  /** There is at least one source. A loop that relies on this needs fewer registers. */
  TRIBUTARY_INLINE void sum(const Product& product, const uint8_t* coefficients, size_t offset) {
    clear();
    const uint8_t* const* source = product.sources;
    const size_t count = product.sourceCount;
    const size_t stride = product.coefficientStride;
    if constexpr (V::kSourcesPerStep == 2) {
      if (count % 2 != 0) addSource(source[count - 1] + offset, coefficients + count - 1, stride);
      for (size_t pairs = count / 2; pairs > 0; pairs--, source += 2, coefficients += 2) {
        addSourcePair(source[0] + offset, source[1] + offset, coefficients, coefficients + 1, stride);
      }
    } else {
      const uint8_t* const* const end = source + count;
      do addSource(*source + offset, coefficients++, stride);
      while (++source != end);
    }
  }

  /** Sums `count` rows (at least one) at distance `stride`. A negative stride walks `factors` backwards too. */
  TRIBUTARY_INLINE void sumRows(const uint8_t* row, ptrdiff_t stride, const uint8_t* factor, size_t count) {
    const ptrdiff_t step = stride < 0 ? -1 : 1;
    clear();
    if constexpr (V::kSourcesPerStep == 2) {
      if (count % 2 != 0) {
        addSource(row, factor, 0);
        row += stride;
        factor += step;
      }
      for (size_t pairs = count / 2; pairs > 0; pairs--, row += 2 * stride, factor += 2 * step) {
        addSourcePair(row, row + stride, factor, factor + step, 0);
      }
    } else {
      do {
        addSource(row, factor, 0);
        row += stride;
        factor += step;
      } while (--count != 0);
    }
  }

  /** Writes `bytes` bytes of each sum. With kWhole that is kBytes; else the last vector may be partial. */
  template <bool kWhole>
  TRIBUTARY_INLINE void write(const Product& product, size_t firstOutput, size_t offset, size_t bytes) {
    TRIBUTARY_UNROLL
    for (int o = 0; o < kOutputs; o++) {
      const uint8_t* addend = product.addends == nullptr ? nullptr : product.addends[firstOutput + o] + offset;
      writeOutput<kWhole>(sums[o], product.outputs[firstOutput + o] + offset, addend, bytes);
    }
  }

  template <bool kWhole>
  static TRIBUTARY_INLINE void writeOutput(typename V::Vector (&sum)[kVectors], uint8_t* output, const uint8_t* addend,
                                           size_t bytes) {
    constexpr int kWholeVectors = kWhole ? kVectors : kVectors - 1;
    constexpr size_t kWholeBytes = kWholeVectors * V::kWidth;
    if (addend != nullptr) addWhole<kWholeVectors>(sum, addend);
    TRIBUTARY_UNROLL
    for (int v = 0; v < kWholeVectors; v++) V::store(output + v * V::kWidth, sum[v]);
    if constexpr (!kWhole) {
      typename V::Vector& last = sum[kWholeVectors];
      const size_t left = bytes - kWholeBytes;
      if (addend != nullptr) last = V::add(last, loadPart<V>(addend + kWholeBytes, left));
      storePart<V>(output + kWholeBytes, last, left);
    }
  }

  template <int kCount>
  static TRIBUTARY_INLINE void addWhole(typename V::Vector (&sum)[kVectors], const uint8_t* addend) {
    TRIBUTARY_UNROLL
    for (int v = 0; v < kCount; v++) sum[v] = V::add(sum[v], V::load(addend + v * V::kWidth));
  }
};

/**
 * Computes one block at `offset` and writes `bytes` bytes of it: all with kWhole, else more than kVectors - 1 vectors.
 * It is not inlined, because GCC would run out of registers and keep addresses in vector registers, where they wait for
 * the arithmetic.
 */
template <class V, int kOutputs, int kVectors, bool kWhole>
TRIBUTARY_OUT_OF_LINE void multiplyBlock(const Product& product, size_t firstOutput, size_t offset, size_t bytes) {
  ProductBlock<V, kOutputs, kVectors> block;
  block.sum(product, product.coefficients + firstOutput * product.coefficientStride, offset);
  block.template write<kWhole>(product, firstOutput, offset, bytes);
}

/** Computes the rest of a strip after its whole blocks, by one block with no more vectors than needed. */
template <class V, int kOutputs, int kVectors>
void multiplyTail(const Product& product, size_t firstOutput, size_t offset, size_t bytes) {
  if constexpr (kVectors > 1) {
    if (bytes <= (kVectors - 1) * V::kWidth) {
      return multiplyTail<V, kOutputs, kVectors - 1>(product, firstOutput, offset, bytes);
    }
  }
  multiplyBlock<V, kOutputs, kVectors, false>(product, firstOutput, offset, bytes);
}

/** Computes kOutputs outputs from `firstOutput` on, for the bytes from `offset` to `end`. */
template <class V, int kOutputs>
void multiplyOutputs(const Product& product, size_t firstOutput, size_t offset, size_t end) {
  constexpr int kVectors = V::kVectors[kOutputs];
  constexpr size_t kBlockBytes = kVectors * V::kWidth;
  static_assert(kStripBytes % kBlockBytes == 0);
  for (; offset + kBlockBytes <= end; offset += kBlockBytes) {
    multiplyBlock<V, kOutputs, kVectors, true>(product, firstOutput, offset, kBlockBytes);
  }
  if (offset < end) multiplyTail<V, kOutputs, kVectors>(product, firstOutput, offset, end - offset);
}

/** Computes a strip: kOutputs outputs at a time, then the rest by smaller blocks. */
template <class V, int kOutputs>
void multiplyStrip(const Product& product, size_t firstOutput, size_t offset, size_t end) {
  for (; firstOutput + kOutputs <= product.outputCount; firstOutput += kOutputs) {
    multiplyOutputs<V, kOutputs>(product, firstOutput, offset, end);
  }
  if constexpr (kOutputs > 1) multiplyStrip<V, kOutputs - 1>(product, firstOutput, offset, end);
}

/** Computes the product of no sources. */
template <class V>
TRIBUTARY_OUT_OF_LINE void multiplyNothing(const Product& product) {
  for (size_t o = 0; o < product.outputCount; o++) {
    for (size_t i = 0; i < product.bytes; i++) {
      product.outputs[o][i] = product.addends != nullptr ? product.addends[o][i] : 0;
    }
  }
}

template <class V>
void multiplyBlocked(const Product& product) {
  if (product.sourceCount == 0) return multiplyNothing<V>(product);
  const size_t stripCount = (product.bytes + kStripBytes - 1) / kStripBytes;
  for (size_t i = 0; i < stripCount; i++) {
    const size_t offset = (product.fromEnd ? stripCount - 1 - i : i) * kStripBytes;
    const size_t end = offset + kStripBytes < product.bytes ? offset + kStripBytes : product.bytes;
    multiplyStrip<V, V::kOutputs>(product, 0, offset, end);
  }
}

/** Computes one block of a sum of rows. Arguments: see multiplyBlock and ProductBlock::sumRows. */
template <class V, int kVectors, bool kWhole>
TRIBUTARY_OUT_OF_LINE void sumRowsBlock(uint8_t* out, const uint8_t* row, ptrdiff_t stride, const uint8_t* factor,
                                        size_t count, size_t bytes) {
  ProductBlock<V, 1, kVectors> block;
  block.sumRows(row, stride, factor, count);
  block.template writeOutput<kWhole>(block.sums[0], out, nullptr, bytes);
}

/** Like multiplyTail, for a sum of rows. */
template <class V, int kVectors>
TRIBUTARY_INLINE void sumRowsTail(uint8_t* out, const uint8_t* row, ptrdiff_t stride, const uint8_t* factor,
                                  size_t count, size_t bytes) {
  if constexpr (kVectors > 1) {
    if (bytes <= (kVectors - 1) * V::kWidth) {
      return sumRowsTail<V, kVectors - 1>(out, row, stride, factor, count, bytes);
    }
  }
  sumRowsBlock<V, kVectors, false>(out, row, stride, factor, count, bytes);
}

/** A sum of rows of more than one block. With a negative stride, the last block comes first. */
template <class V>
TRIBUTARY_OUT_OF_LINE void sumWideRows(uint8_t* out, const uint8_t* row, ptrdiff_t stride, const uint8_t* factor,
                                       size_t count, size_t bytes) {
  constexpr size_t kBlockBytes = V::kRowVectors * V::kWidth;
  const size_t last = (bytes - 1) / kBlockBytes * kBlockBytes;
  const auto sumLast = [&] {
    sumRowsTail<V, V::kRowVectors>(out + last, row + last, stride, factor, count, bytes - last);
  };
  if (stride < 0) sumLast();
  for (size_t done = 0; done < last; done += kBlockBytes) {
    const size_t offset = stride < 0 ? last - kBlockBytes - done : done;
    sumRowsBlock<V, V::kRowVectors, true>(out + offset, row + offset, stride, factor, count, kBlockBytes);
  }
  if (stride > 0) sumLast();
}

/** engine.h: SumRows. A block may span all columns, so `fromEnd` also reverses the order of the rows. */
template <class V>
void sumRowsBlocked(uint8_t* out, const uint8_t* rows, size_t stride, const uint8_t* factors, size_t count,
                    size_t bytes, bool fromEnd) {
  ptrdiff_t step = static_cast<ptrdiff_t>(stride);
  if (fromEnd) {
    rows += (count - 1) * stride;
    factors += count - 1;
    step = -step;
  }
  if (bytes > V::kRowVectors * V::kWidth) return sumWideRows<V>(out, rows, step, factors, count, bytes);
  sumRowsTail<V, V::kRowVectors>(out, rows, step, factors, count, bytes);
}

/** engine.h: CombineRows. */
template <class V>
void combineRowsBlocked(uint8_t* out, const uint8_t* addend, const uint8_t* rows, size_t stride, const uint8_t* factors,
                        size_t count, size_t bytes) {
  for (size_t offset = 0; offset < bytes; offset += V::kWidth) {
    typename V::Vector sum = V::zero();
    size_t r = 0;
    if constexpr (V::kSourcesPerStep == 2) {
      const uint8_t* row = rows + offset;
      for (; r + 2 <= count; r += 2, row += 2 * stride) {
        sum = V::multiplyAdd2(sum, V::factor(factors[r]), V::split(V::load(row)), V::factor(factors[r + 1]),
                              V::split(V::load(row + stride)));
      }
    }
    for (; r < count; r++) {
      if (factors[r] == 0) continue;
      sum = V::multiplyAdd(sum, V::factor(factors[r]), V::split(V::load(rows + r * stride + offset)));
    }
    V::store(out + offset, V::add(sum, V::load(addend + offset)));
  }
}

/** Zeros, a 1, zeros. Every unit vector of a register's width starts somewhere in it. */
struct Unit {
  uint8_t bytes[2 * kRowPadding] = {};
  constexpr Unit() { bytes[kRowPadding] = 1; }
};
inline constexpr Unit kUnit;

/** Adopts one vector of the row. `unit` is the part of column `pivot`'s unit vector at `offset`. */
template <class V>
TRIBUTARY_INLINE void adoptVector(uint8_t* rows, size_t stride, size_t count, size_t pivot, const uint8_t* incoming,
                                  uint8_t scale, size_t offset, typename V::Vector unit) {
  const typename V::Split source = V::split(V::add(V::load(incoming + offset), unit));
  const typename V::Vector scaled = V::multiplyAdd(V::zero(), V::factor(scale), source);
  const typename V::Split by = V::split(scaled);
  for (size_t r = 0; r < count; r++) {
    uint8_t* row = rows + r * stride;
    if (row[pivot] == 0) continue;
    V::store(row + offset, V::multiplyAdd(V::load(row + offset), V::factor(row[pivot]), by));
  }
  V::store(rows + pivot * stride + offset, V::add(scaled, unit));
}

/** engine.h: AdoptRow. The vector with the pivot comes last, because it changes the factors. */
template <class V>
void adoptRowBlocked(uint8_t* rows, size_t stride, size_t count, size_t pivot, const uint8_t* incoming, uint8_t scale,
                     size_t bytes) {
  const size_t last = pivot / V::kWidth * V::kWidth;
  for (size_t offset = 0; offset < bytes; offset += V::kWidth) {
    if (offset != last) adoptVector<V>(rows, stride, count, pivot, incoming, scale, offset, V::zero());
  }
  const typename V::Vector unit = V::load(kUnit.bytes + kRowPadding - (pivot - last));
  adoptVector<V>(rows, stride, count, pivot, incoming, scale, last, unit);
}

}  // namespace tributary

#endif  // TRIBUTARY_ENGINE_BLOCK_H_
