/**
 * Gauss-Jordan elimination in place, one row at a time. As the rows held are in reduced form, an arriving row's own
 * entries at the pivot columns are all its factors at once: one pass over the rows reduces it, and one more clears its
 * pivot column from them.
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

/** Whether `row` is zero at all columns that are no pivot; both padded with zeros to whole words. */
bool isZeroBesides(const uint8_t* row, const uint8_t* pivots, size_t wordBytes) {
  for (size_t i = 0; i < wordBytes; i += kWord) {
    if ((wordAt(row + i) & ~wordAt(pivots + i)) != 0) return false;
  }
  return true;
}

/** The place, from the first, of a word's byte `index` in memory. */
constexpr unsigned shiftOf(size_t index) {
  const size_t place = std::endian::native == std::endian::little ? index : kWord - 1 - index;
  return static_cast<unsigned>(8 * place);
}

/** The first column where `row` is not zero and that is no pivot. */
size_t firstFreeColumn(const uint8_t* row, const uint8_t* pivots, size_t wordBytes) {
  for (size_t i = 0; i < wordBytes; i += kWord) {
    const uint64_t word = wordAt(row + i) & ~wordAt(pivots + i);
    if (word == 0) continue;
    const int zeros = std::endian::native == std::endian::little ? std::countr_zero(word) : std::countl_zero(word);
    return i + static_cast<size_t>(zeros) / 8;
  }
  return Elimination::kNone;
}

/** The first `bytes` bytes, at most a word, and zeros. */
uint64_t startAt(const uint8_t* from, size_t bytes) {
  if (bytes >= kWord) return wordAt(from);
  uint64_t word = 0;
  for (size_t i = 0; i < bytes; i++) word |= uint64_t{from[i]} << shiftOf(i);
  return word;
}

/** The entries of `row` (`bytes` bytes) at columns that are no pivot to `left`, in whole words. */
void takeBesides(const uint8_t* row, size_t bytes, const uint8_t* pivots, uint8_t* left) {
  for (size_t i = 0; i < bytes; i += kWord) {
    const uint64_t word = startAt(row + i, bytes - i) & ~wordAt(pivots + i);
    memcpy(left + i, &word, kWord);
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
  firstFree_ = 0;
}

/**
 * Loads and stores of what was just written are of one size, or the processor would wait for its stores to finish. What
 * `coefficients` has at columns that are no pivot is multiplied too, by rows of zeros. The pivot of a dense vector is
 * nearly always the first free column, and nothing waits for a guess that holds.
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
 * Scales a reduced row to have 1 at its pivot, and clears that column from the rows held so far. In place: the entry
 * at the pivot then says what was taken of the new payload: inverse for the row itself, h x inverse for a row that
 * held h there. As h x scaled entry is added to h, the scaled entry must be 1 + inverse: hence adoptRow's unit vector.
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
