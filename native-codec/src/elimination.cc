/**
 * Gauss-Jordan elimination in place, one row at a time. The held rows are in reduced form, so the entries of an
 * arriving row at the pivot columns are its factors. One pass over the held rows reduces the new row, and a second pass
 * clears its pivot column from them.
 */
#include <bit>
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

/** Returns true if `row` is zero at every column that is no pivot. Zeros pad both to whole words. */
bool isZeroBesides(const uint8_t* row, const uint8_t* pivots, size_t wordBytes) {
  for (size_t i = 0; i < wordBytes; i += kWord) {
    if ((wordAt(row + i) & ~wordAt(pivots + i)) != 0) return false;
  }
  return true;
}

/** How far to shift a byte so that it becomes byte `index` of a word in memory. */
constexpr unsigned shiftOf(size_t index) {
  const size_t place = std::endian::native == std::endian::little ? index : kWord - 1 - index;
  return static_cast<unsigned>(8 * place);
}

/** Returns the first column that is no pivot and at which `row` is not zero. */
size_t firstFreeColumn(const uint8_t* row, const uint8_t* pivots, size_t wordBytes) {
  for (size_t i = 0; i < wordBytes; i += kWord) {
    const uint64_t word = wordAt(row + i) & ~wordAt(pivots + i);
    if (word == 0) continue;
    const int zeros = std::endian::native == std::endian::little ? std::countr_zero(word) : std::countl_zero(word);
    return i + static_cast<size_t>(zeros) / 8;
  }
  return Elimination::kNone;
}

/** Loads a word from the first `bytes` bytes, and fills the rest with zeros. */
uint64_t startAt(const uint8_t* from, size_t bytes) {
  if (bytes >= kWord) return wordAt(from);
  uint64_t word = 0;
  for (size_t i = 0; i < bytes; i++) word |= uint64_t{from[i]} << shiftOf(i);
  return word;
}

/** Copies `row` (`bytes` bytes) to `left` in whole words, with zeros at the pivot columns. */
void takeBesides(const uint8_t* row, size_t bytes, const uint8_t* pivots, uint8_t* left) {
  for (size_t i = 0; i < bytes; i += kWord) {
    const uint64_t word = startAt(row + i, bytes - i) & ~wordAt(pivots + i);
    memcpy(left + i, &word, kWord);
  }
}

/** A row on the stack, with the padding that engines may touch. */
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

/**
 * A load of fresh bytes has the size of their store; else the processor waits until the store is finished. Coefficients
 * at columns that are no pivot are multiplied too, by rows of zeros. The code guesses that the pivot is the first free
 * column. For a dense vector that is nearly always right, and a right guess costs no time.
 */
size_t Elimination::add(const uint8_t* coefficients) {
  if (rank_ == symbolCount_) return kNone;
  PaddedRow incoming, reduced;
  memset(incoming.bytes + (symbolCount_ - 1) / kRowPadding * kRowPadding, 0, kRowPadding);
  takeBesides(coefficients, symbolCount_, pivots_, incoming.bytes);
  engine_->combineRows(reduced.bytes, incoming.bytes, rows_.row(0), rows_.stride(), coefficients, usedRows_,
                       symbolCount_);
  const bool isLikely = reduced.bytes[firstFree_] != 0;
  const size_t pivot = isLikely ? firstFree_ : firstFreeColumn(reduced.bytes, pivots_, wordBytes_);
  if (pivot != kNone) adopt(reduced.bytes, pivot);
  return pivot;
}

/**
 * Scales a reduced row so that it has 1 at its pivot, and clears that column from the held rows. The matrix is inverted
 * in place, so the entry at the pivot becomes the factor of the new payload: `inverse` for the row itself, and
 * h x inverse for a row that held h there. That row adds h times the scaled entry to h. So the scaled entry must be
 * 1 + inverse, which is why adoptRow adds a unit vector.
 */
void Elimination::adopt(const uint8_t* reduced, size_t pivot) {
  const uint8_t inverse = gf256::kInverses.of[reduced[pivot]];
  engine_->adoptRow(rows_.row(0), rows_.stride(), usedRows_, pivot, reduced, inverse, symbolCount_);
  uint8_t* const own = pivots_ + pivot / kWord * kWord;
  const uint64_t pivots = wordAt(own) | uint64_t{0xFF} << shiftOf(pivot % kWord);
  memcpy(own, &pivots, kWord);
  if (usedRows_ <= pivot) usedRows_ = pivot + 1;
  rank_++;
  while (firstFree_ < symbolCount_ && isPivot(firstFree_)) firstFree_++;
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
  for (size_t r = 0; r < usedRows_; r++) {
    if (pivots_[r] == 0) continue;
    uint8_t* const row = rows_.row(r);
    for (size_t i = 0; i < wordBytes_; i += kWord) {
      const uint64_t left = wordAt(row + i) & ~wordAt(pivots_ + i);
      memcpy(row + i, &left, kWord);
    }
    row[r] = 1;
  }
}

}  // namespace tributary::detail
