/**
 * Gauss-Jordan elimination, one row at a time. As the rows held are in reduced form, an arriving row's own entries at
 * the pivot columns are all its factors at once: one product with many sources reduces it, and one product with many
 * outputs clears its pivot column from the others.
 */
#include <cstring>

#include "engine.h"
#include "gf256.h"
#include "tributary/codec.h"

namespace tributary::detail {
namespace {

constexpr uint16_t kNoRow = 0xFFFF;

size_t firstNonZero(const uint8_t* bytes, size_t count) {
  size_t i = 0;
  while (i < count && bytes[i] == 0) i++;
  return i;
}

}  // namespace

Status Elimination::initialize(const Engine& engine, size_t symbolCount, bool withTransform) {
  engine_ = &engine;
  symbolCount_ = symbolCount;
  withTransform_ = withTransform;
  for (uint16_t& row : rowOfColumn_) row = kNoRow;
  return rows_.allocate(symbolCount + 1, withTransform ? 2 * symbolCount : symbolCount);
}

bool Elimination::add(const uint8_t* coefficients) {
  if (rank_ == symbolCount_) return false;
  uint8_t* incoming = rows_.row(symbolCount_);
  memcpy(incoming, coefficients, symbolCount_);
  if (withTransform_) {
    memset(incoming + symbolCount_, 0, symbolCount_);
    incoming[symbolCount_ + rank_] = 1;
  }
  reduce(incoming);
  const size_t pivotColumn = firstNonZero(incoming, symbolCount_);
  if (pivotColumn == symbolCount_) return false;
  adopt(incoming, pivotColumn);
  return true;
}

bool Elimination::determines(size_t index) const {
  if (rank_ == symbolCount_) return true;
  if (rowOfColumn_[index] == kNoRow) return false;
  const uint8_t* row = rows_.row(rowOfColumn_[index]);
  return firstNonZero(row, index) == index &&
         firstNonZero(row + index + 1, symbolCount_ - index - 1) == symbolCount_ - index - 1;
}

/** Clears the pivot columns of `incoming`. */
void Elimination::reduce(uint8_t* incoming) const {
  const uint8_t* sources[kSymbolCountMax];
  uint8_t factors[kSymbolCountMax];
  size_t count = 0;
  for (size_t r = 0; r < rank_; r++) {
    const uint8_t factor = incoming[columnOfRow_[r]];
    if (factor == 0) continue;
    sources[count] = rows_.row(r);
    factors[count++] = factor;
  }
  if (count == 0) return;
  const size_t usedBytes = withTransform_ ? symbolCount_ + rank_ : symbolCount_;
  engine_->multiply({&incoming, 1, sources, count, factors, count, usedBytes, true});
}

/** Takes a reduced row in, scaled to have 1 at its pivot, and clears that column from the rows held so far. */
void Elimination::adopt(const uint8_t* incoming, size_t pivotColumn) {
  const size_t usedBytes = withTransform_ ? symbolCount_ + rank_ + 1 : symbolCount_;
  uint8_t* adopted = rows_.row(rank_);
  const uint8_t* const adoptedSource = adopted;
  engine_->multiply({&adopted, 1, &incoming, 1, &gf256::kInverses.of[incoming[pivotColumn]], 1, usedBytes, false});

  uint8_t* outputs[kSymbolCountMax];
  uint8_t factors[kSymbolCountMax];
  size_t count = 0;
  for (size_t r = 0; r < rank_; r++) {
    const uint8_t factor = rows_.row(r)[pivotColumn];
    if (factor == 0) continue;
    outputs[count] = rows_.row(r);
    factors[count++] = factor;
  }
  if (count > 0) engine_->multiply({outputs, count, &adoptedSource, 1, factors, 1, usedBytes, true});
  columnOfRow_[rank_] = static_cast<uint16_t>(pivotColumn);
  rowOfColumn_[pivotColumn] = static_cast<uint16_t>(rank_);
  rank_++;
}

}  // namespace tributary::detail
