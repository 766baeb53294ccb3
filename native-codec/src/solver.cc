/**
 * Solver: decides when to multiply payloads, and by which factors.
 *
 * A settled row holds the right side of its equation at the last settling. A fresh row holds its payload as received.
 * Settling is two matrix products: the first computes the right sides of the fresh rows from all payloads, and the
 * second clears the fresh columns from the settled rows. All settlings together cost symbolCount x symbolBytes
 * multiply-adds for each coded symbol, for any spread. The last one costs little more than twice its batch.
 *
 * A small generation settles once, when it is read. More settlings would cost more time than that read takes.
 */
#include <cstring>

#include "engine.h"
#include "tributary/codec.h"

namespace tributary::detail {
namespace {

/** Fresh payloads in a settling before the last: enough for products at nearly full speed. */
constexpr size_t kBatch = 64;
/** Fresh payloads in the last settling: one for each output of a block, so that little is left and none is wasted. */
#if defined(__wasm_simd128__)
/** This engine pays for each pass over the sources. One settling takes little longer than the last of several. */
constexpr size_t kLastBatch = 32;
#else
constexpr size_t kLastBatch = 4;
#endif
/** A generation of at most so many multiply-adds settles once, which takes the fastest engine 4 us. */
constexpr uint64_t kMultiplyAddsAtOnce = 1'000'000;

}  // namespace

Status Solver::initialize(const Engine& engine, size_t symbolCount, size_t symbolBytes) {
  engine_ = &engine;
  symbolCount_ = symbolCount;
  symbolBytes_ = symbolBytes;
  // Only the used part is cleared, because a small generation decodes in microseconds.
  memset(isFresh_, 0, symbolCount);
  memset(side_, 0, symbolCount);
  Status status = elimination_.initialize(engine, symbolCount);
  if (status.ok()) status = settledMatrix_.allocate(2 * symbolCount, symbolCount, Fill::kNothing);
  if (status.ok()) status = payloads_.allocate(2 * symbolCount, symbolBytes, Fill::kNothing);
  return status;
}

bool Solver::Columns::isRun() const {
  for (size_t i = 1; i < count; i++) {
    if (of[i] != of[i - 1] + 1) return false;
  }
  return true;
}

uint8_t* Solver::add(const uint8_t* coefficients) {
  const size_t pivot = elimination_.add(coefficients);
  if (pivot == Elimination::kNone) return nullptr;
  fresh_.add(pivot);
  isFresh_[pivot] = true;
  hasCoded_ = hasCoded_ || !elimination_.isPlain(pivot);
  return payload(pivot);
}

bool Solver::isDue() const {
  const size_t missing = symbolCount_ - rank();
  if (!hasCoded_ || missing == 0) return false;
  if (uint64_t{symbolCount_} * symbolCount_ * symbolBytes_ <= kMultiplyAddsAtOnce) return false;
  return fresh_.count >= kBatch || (missing <= kLastBatch && fresh_.count > kLastBatch);
}

void Solver::settle() {
  if (!hasCoded_ || fresh_.count == 0) return;
  solveFresh();
  Columns touched;
  findTouched(touched);
  uint8_t* rows[kRepairMissingMax];
  for (size_t t = 0; t < touched.count; t++) rows[t] = payload(touched.of[t]);
  multiply(rows, rows, touched, fresh_, settledMatrix_);
  for (size_t f = 0; f < fresh_.count; f++) isFresh_[fresh_.of[f]] = false;
  fresh_.count = 0;
  freshIsSolved_ = false;
  elimination_.rebase();
  if (rank() == symbolCount_) return;
  memcpy(settledMatrix_.row(0), elimination_.rows().row(0), symbolCount_ * settledMatrix_.stride());
}

const uint8_t* Solver::symbol(size_t index) {
  if (fresh_.count > 0 && !elimination_.isPlain(index)) settle();
  return payload(index);
}

void Solver::readAll(uint8_t* out) {
  Columns computed;
  const bool nothingIsSettled = fresh_.count == symbolCount_ && !freshIsSolved_;
  if (nothingIsSettled) {
    findUnsolved(computed);
  } else if (hasCoded_ && fresh_.count > 0) {
    solveFresh();
    findTouched(computed);
  }
  uint8_t* outputs[kRepairMissingMax];
  const uint8_t* addends[kRepairMissingMax];
  for (size_t i = 0; i < computed.count; i++) {
    outputs[i] = out + computed.of[i] * symbolBytes_;
    addends[i] = payload(computed.of[i]);
  }
  if (nothingIsSettled) {
    multiplyHeld(outputs, computed);
  } else {
    multiply(outputs, addends, computed, fresh_, settledMatrix_);
  }
  for (size_t c = 0, i = 0; c < symbolCount_; c++) {
    if (i < computed.count && computed.of[i] == c) {
      i++;
    } else {
      memcpy(out + c * symbolBytes_, payload(c), symbolBytes_);
    }
  }
}

/** Computes the right sides of the fresh rows from all payloads. */
void Solver::solveFresh() {
  if (freshIsSolved_) return;
  freshIsSolved_ = true;
  Columns unsolved;
  findUnsolved(unsolved);
  if (unsolved.count == 0) return;
  uint8_t* outputs[kRepairMissingMax];
  for (size_t o = 0; o < unsolved.count; o++) outputs[o] = spare(unsolved.of[o]);
  multiplyHeld(outputs, unsolved);
  for (size_t o = 0; o < unsolved.count; o++) side_[unsolved.of[o]] ^= 1;
}

/** Computes the right sides of the rows `to` from all payloads. */
void Solver::multiplyHeld(uint8_t* const* outputs, const Columns& to) {
  Columns held;
  for (size_t c = 0; c < symbolCount_; c++) {
    if (elimination_.isPivot(c)) held.add(c);
  }
  multiply(outputs, nullptr, to, held, elimination_.rows());
}

/** Finds the fresh rows, in the order of the symbols. A plain row is already solved. */
void Solver::findUnsolved(Columns& unsolved) const {
  for (size_t c = 0; c < symbolCount_; c++) {
    if (isFresh_[c] && !elimination_.isPlain(c)) unsolved.add(c);
  }
}

/** Finds the settled rows that are not zero at a fresh column. */
void Solver::findTouched(Columns& touched) const {
  for (size_t c = 0; c < symbolCount_; c++) {
    if (!elimination_.isPivot(c) || isFresh_[c]) continue;
    const uint8_t* row = settledMatrix_.row(c);
    uint8_t seen = 0;
    for (size_t f = 0; f < fresh_.count; f++) seen |= row[fresh_.of[f]];
    if (seen != 0) touched.add(c);
  }
}

/** Computes outputs[o] = (addends[o] +) sum over columns f of `from` of matrix[to[o]][f] x payload f. */
void Solver::multiply(uint8_t* const* outputs, const uint8_t* const* addends, const Columns& to, const Columns& from,
                      const Rows& matrix) {
  if (to.count == 0) return;
  const uint8_t* sources[kRepairMissingMax];
  for (size_t s = 0; s < from.count; s++) sources[s] = payload(from.of[s]);
  const bool isInPlace = to.isRun() && from.isRun();
  if (!isInPlace) gatherFactors(to, from, matrix);
  const uint8_t* factors = isInPlace ? matrix.row(to.of[0]) + from.of[0] : settledMatrix_.row(symbolCount_);
  // Of two products on the same rows, the second one adds, and it walks the rows back from the end.
  engine_->multiply(
      {outputs, to.count, sources, from.count, factors, matrix.stride(), symbolBytes_, addends, addends != nullptr});
}

/** Copies the part of `matrix` with these rows and columns to the rows for factors. */
void Solver::gatherFactors(const Columns& to, const Columns& from, const Rows& matrix) {
  for (size_t o = 0; o < to.count; o++) {
    const uint8_t* row = matrix.row(to.of[o]);
    uint8_t* factors = settledMatrix_.row(symbolCount_ + o);
    for (size_t s = 0; s < from.count; s++) factors[s] = row[from.of[s]];
  }
}

}  // namespace tributary::detail
