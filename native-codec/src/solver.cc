/**
 * Solver: when payloads are multiplied, and by what.
 *
 * Settled rows hold the right sides of the elimination's equations as they stood at the last settling; fresh ones are
 * as received. Settling computes the right sides of the fresh rows from all payloads, then clears the fresh columns
 * from the settled rows: two matrix products. However the settlings are spread, all of them together cost
 * symbolCount x symbolBytes multiply-adds for each coded symbol, and the last one hardly more than twice its batch.
 * Small generations are settled once, by whoever reads them: more settlings would cost more than that wait.
 */
#include <cstring>

#include "engine.h"
#include "tributary/codec.h"

namespace tributary::detail {
namespace {

/** Fresh payloads to a settling before the last: enough for the products to run at nearly full speed. */
constexpr size_t kBatch = 64;
/** Fresh payloads left to the last settling: as many as a block has outputs, so that few wait and none is wasted. */
#if defined(__wasm_simd128__)
/** That engine has a cost for each pass over the sources: one settling takes little longer than the last of several. */
constexpr size_t kLastBatch = 32;
#else
constexpr size_t kLastBatch = 4;
#endif
/** A generation of at most so many multiply-adds is left to one settling: 4 us of work for the fastest engine. */
constexpr uint64_t kMultiplyAddsAtOnce = 1'000'000;

}  // namespace

Status Solver::initialize(const Engine& engine, size_t symbolCount, size_t symbolBytes) {
  engine_ = &engine;
  symbolCount_ = symbolCount;
  symbolBytes_ = symbolBytes;
  forgetPayloads();
  Status status = elimination_.initialize(engine, symbolCount);
  if (status.ok()) status = settledMatrix_.allocate(2 * symbolCount, symbolCount, Fill::kNothing);
  if (status.ok()) status = payloads_.allocate(2 * symbolCount, symbolBytes, Fill::kNothing);
  return status;
}

void Solver::reset() {
  elimination_.reset();
  forgetPayloads();
}

/** Of the arrays, only what this many symbols use: a small generation is decoded in microseconds. */
void Solver::forgetPayloads() {
  fresh_.count = 0;
  memset(isFresh_, 0, symbolCount_);
  memset(side_, 0, symbolCount_);
  freshIsSolved_ = false;
  hasCoded_ = false;
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

/** The right sides of the fresh rows, from all payloads. */
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

/** The right sides of these rows, from all payloads. */
void Solver::multiplyHeld(uint8_t* const* outputs, const Columns& to) {
  Columns held;
  for (size_t c = 0; c < symbolCount_; c++) {
    if (elimination_.isPivot(c)) held.add(c);
  }
  multiply(outputs, nullptr, to, held, elimination_.rows());
}

/** Fresh rows in the order of the symbols. Plain ones are solved as they come. */
void Solver::findUnsolved(Columns& unsolved) const {
  for (size_t c = 0; c < symbolCount_; c++) {
    if (isFresh_[c] && !elimination_.isPlain(c)) unsolved.add(c);
  }
}

/** The settled rows that hold something at fresh columns. */
void Solver::findTouched(Columns& touched) const {
  for (size_t c = 0; c < symbolCount_; c++) {
    if (!elimination_.isPivot(c) || isFresh_[c]) continue;
    const uint8_t* row = settledMatrix_.row(c);
    uint8_t seen = 0;
    for (size_t f = 0; f < fresh_.count; f++) seen |= row[fresh_.of[f]];
    if (seen != 0) touched.add(c);
  }
}

/** outputs[o] = (addends[o] +) sum over `from` of matrix[to[o]][from] x payload. */
void Solver::multiply(uint8_t* const* outputs, const uint8_t* const* addends, const Columns& to, const Columns& from,
                      const Rows& matrix) {
  if (to.count == 0) return;
  const uint8_t* sources[kRepairMissingMax];
  for (size_t s = 0; s < from.count; s++) sources[s] = payload(from.of[s]);
  const bool isInPlace = to.isRun() && from.isRun();
  if (!isInPlace) gatherFactors(to, from, matrix);
  const uint8_t* factors = isInPlace ? matrix.row(to.of[0]) + from.of[0] : settledMatrix_.row(symbolCount_);
  // Of two products on the same rows the second, the one that adds, goes back the way that the first one came.
  engine_->multiply(
      {outputs, to.count, sources, from.count, factors, matrix.stride(), symbolBytes_, addends, addends != nullptr});
}

/** The part of `matrix` that belongs to these rows and columns, to the factors' rows. */
void Solver::gatherFactors(const Columns& to, const Columns& from, const Rows& matrix) {
  for (size_t o = 0; o < to.count; o++) {
    const uint8_t* row = matrix.row(to.of[o]);
    uint8_t* factors = settledMatrix_.row(symbolCount_ + o);
    for (size_t s = 0; s < from.count; s++) factors[s] = row[from.of[s]];
  }
}

}  // namespace tributary::detail
