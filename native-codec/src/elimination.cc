/**
 * Gauss-Jordan elimination in place, one row at a time. As the rows held are in reduced form, an arriving row's own
 * entries at the pivot columns are all its factors at once: one pass over the rows reduces it, and one more clears its
 * pivot column from them.
 */
#include <cstring>

#include "engine.h"
#include "gf256.h"
#include "tributary/codec.h"

namespace tributary::detail {
namespace {

constexpr size_t kWord = sizeof(uint64_t);
static_assert(kRepairMissingMax % kRowPadding == 0);

uint64_t wordAt(const uint8_t* bytes) {
  uint64_t word;
  memcpy(&word, bytes, kWord);
  return word;
}

/** Whether `row` is zero at all columns that are no pivot; both padded with zeros to whole words. */
bool isZeroBesides(const uint8_t* row, const uint8_t* pivots, size_t wordBytes) {
  for (size_t i = 0; i < wordBytes; i += kWord) {
    if ((wordAt(row + i) & ~wordAt(pivots + i)) != 0) return false;
  }
  return true;
}

/** The first column where `row` is not zero and that is no pivot. */
size_t firstFreeColumn(const uint8_t* row, const uint8_t* pivots, size_t wordBytes) {
  for (size_t i = 0; i < wordBytes; i += kWord) {
    if ((wordAt(row + i) & ~wordAt(pivots + i)) == 0) continue;
    while (row[i] == 0 || pivots[i] != 0) i++;
    return i;
  }
  return Elimination::kNone;
}

/** Moves the entries of `row` at pivot columns to `factors`. */
void takeFactors(uint8_t* row, const uint8_t* pivots, uint8_t* factors, size_t wordBytes) {
  for (size_t i = 0; i < wordBytes; i += kWord) {
    const uint64_t word = wordAt(row + i);
    const uint64_t taken = word & wordAt(pivots + i);
    const uint64_t left = word ^ taken;
    memcpy(factors + i, &taken, kWord);
    memcpy(row + i, &left, kWord);
  }
}

void addWords(uint8_t* sum, const uint8_t* row, size_t wordBytes) {
  for (size_t i = 0; i < wordBytes; i += kWord) {
    const uint64_t word = wordAt(sum + i) ^ wordAt(row + i);
    memcpy(sum + i, &word, kWord);
  }
}

/** A row with the padding that engines may touch, on the stack. */
struct alignas(kRowPadding) PaddedRow {
  uint8_t bytes[kRepairMissingMax];
};

}  // namespace

Status Elimination::initialize(const Engine& engine, size_t symbolCount) {
  engine_ = &engine;
  symbolCount_ = symbolCount;
  wordBytes_ = (symbolCount + kWord - 1) / kWord * kWord;
  const Status status = rows_.allocate(symbolCount + 1, symbolCount, Fill::kZeros);
  if (status.ok()) pivots_ = rows_.row(symbolCount);
  return status;
}

void Elimination::reset() {
  memset(rows_.row(0), 0, (symbolCount_ + 1) * rows_.stride());
  rank_ = 0;
  usedRows_ = 0;
}

size_t Elimination::add(const uint8_t* coefficients) {
  if (rank_ == symbolCount_) return kNone;
  PaddedRow incoming, factors, sum;
  const size_t lastBytes = (symbolCount_ - 1) / kRowPadding * kRowPadding;
  memset(incoming.bytes + lastBytes, 0, kRowPadding);
  memcpy(incoming.bytes, coefficients, symbolCount_);
  takeFactors(incoming.bytes, pivots_, factors.bytes, wordBytes_);
  engine_->combineRows(sum.bytes, rows_.row(0), rows_.stride(), factors.bytes, usedRows_, symbolCount_);
  addWords(incoming.bytes, sum.bytes, wordBytes_);
  const size_t pivot = firstFreeColumn(incoming.bytes, pivots_, wordBytes_);
  if (pivot != kNone) adopt(incoming.bytes, pivot);
  return pivot;
}

/**
 * Scales a reduced row to have 1 at its pivot, and clears that column from the rows held so far. In place: the entry
 * at the pivot then says what was taken of the new payload: inverse for the row itself, h x inverse for a row that
 * held h there. As h x scaled entry is added to h, the scaled entry must be 1 + inverse.
 */
void Elimination::adopt(uint8_t* incoming, size_t pivot) {
  const uint8_t inverse = gf256::kInverses.of[incoming[pivot]];
  incoming[pivot] ^= 1;
  engine_->adoptRow(rows_.row(0), rows_.stride(), usedRows_, pivot, incoming, inverse, symbolCount_);
  rows_.row(pivot)[pivot] = inverse;
  pivots_[pivot] = 0xFF;
  if (usedRows_ <= pivot) usedRows_ = pivot + 1;
  rank_++;
}

bool Elimination::determines(size_t index) const {
  return pivots_[index] != 0 && (rank_ == symbolCount_ || isZeroBesides(rows_.row(index), pivots_, wordBytes_));
}

bool Elimination::isPlain(size_t index) const {
  const uint8_t* row = rows_.row(index);
  if (row[index] != 1 || pivots_[index] == 0) return false;
  uint8_t besides[kWord];
  const size_t own = index / kWord * kWord;
  memcpy(besides, row + own, kWord);
  besides[index - own] = 0;
  uint64_t seen = wordAt(besides);
  for (size_t i = 0; i < wordBytes_; i += kWord) seen |= i == own ? 0 : wordAt(row + i);
  return seen == 0;
}

void Elimination::rebase() {
  PaddedRow taken;
  for (size_t r = 0; r < usedRows_; r++) {
    if (pivots_[r] == 0) continue;
    takeFactors(rows_.row(r), pivots_, taken.bytes, wordBytes_);
    rows_.row(r)[r] = 1;
  }
}

}  // namespace tributary::detail
