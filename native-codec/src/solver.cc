/**
 * Solver: when payloads are multiplied, and by what.
 *
 * Settled rows hold the right sides of the elimination's equations as they stood at the last settling; fresh ones are
 * as received. Settling computes the right sides of the fresh rows from all payloads, then clears the fresh columns
 * from the settled rows: two matrix products. However the settlings are spread, all of them together cost
 * symbolCount x symbolBytes multiply-adds for each coded symbol, and the last one hardly more than twice its batch.
 */
#include <cstring>

#include "engine.h"
#include "tributary/codec.h"

namespace tributary::detail {
namespace {

/** Fresh payloads to a settling before the last: enough for the products to run at nearly full speed. */
constexpr size_t kBatch = 32;
/** Fresh payloads left to the last settling: as many as a block has outputs, so that few wait and none is wasted. */
#if defined(__wasm_simd128__)
/** That engine has a cost for each pass over the sources: one settling takes little longer than the last of several. */
constexpr size_t kLastBatch = kBatch;
#else
constexpr size_t kLastBatch = 4;
#endif

}  // namespace

Status Solver::initialize(const Engine& engine, size_t symbolCount, size_t symbolBytes) {
  engine_ = &engine;
  symbolCount_ = symbolCount;
  symbolBytes_ = symbolBytes;
  Status status = elimination_.initialize(engine, symbolCount);
  if (status.ok()) status = settledMatrix_.allocate(symbolCount, symbolCount, Fill::kNothing);
  if (status.ok()) status = factors_.allocate(symbolCount, symbolCount, Fill::kNothing);
  if (status.ok()) status = payloads_.allocate(2 * symbolCount, symbolBytes, Fill::kNothing);
  return status;
}

void Solver::reset() {
  elimination_.reset();
  fresh_.count = 0;
  memset(isFresh_, 0, sizeof isFresh_);
  memset(side_, 0, sizeof side_);
  hasCoded_ = false;
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
  return fresh_.count >= kBatch || (missing <= kLastBatch && fresh_.count > kLastBatch);
}

void Solver::settle() {
  if (!hasCoded_ || fresh_.count == 0) return;
  solveFresh();
  clearFreshFromSettled();
  for (size_t f = 0; f < fresh_.count; f++) isFresh_[fresh_.of[f]] = false;
  fresh_.count = 0;
  elimination_.rebase();
  if (rank() == symbolCount_) return;
  memcpy(settledMatrix_.row(0), elimination_.rows().row(0), symbolCount_ * settledMatrix_.stride());
}

const uint8_t* Solver::symbol(size_t index) {
  if (fresh_.count > 0 && !elimination_.isPlain(index)) settle();
  return payload(index);
}

/** The right sides of the fresh rows, from all payloads. Plain ones are there already. */
void Solver::solveFresh() {
  Columns missing, held;
  for (size_t f = 0; f < fresh_.count; f++) {
    if (!elimination_.isPlain(fresh_.of[f])) missing.add(fresh_.of[f]);
  }
  for (size_t c = 0; c < symbolCount_; c++) {
    if (elimination_.isPivot(c)) held.add(c);
  }
  uint8_t* outputs[kRepairMissingMax];
  for (size_t o = 0; o < missing.count; o++) outputs[o] = spare(missing.of[o]);
  multiply(outputs, missing, held, elimination_.rows(), false);
  for (size_t o = 0; o < missing.count; o++) side_[missing.of[o]] ^= 1;
}

/** What the settled rows hold at fresh columns, taken off their right sides. */
void Solver::clearFreshFromSettled() {
  Columns touched;
  uint8_t* outputs[kRepairMissingMax];
  for (size_t c = 0; c < symbolCount_; c++) {
    if (!elimination_.isPivot(c) || isFresh_[c]) continue;
    const uint8_t* row = settledMatrix_.row(c);
    uint8_t seen = 0;
    for (size_t f = 0; f < fresh_.count; f++) seen |= row[fresh_.of[f]];
    if (seen == 0) continue;
    outputs[touched.count] = payload(c);
    touched.add(c);
  }
  multiply(outputs, touched, fresh_, settledMatrix_, true);
}

/** outputs[o] = (or +=) sum over `from` of matrix[to[o]][from] x payload. */
void Solver::multiply(uint8_t* const* outputs, const Columns& to, const Columns& from, const Rows& matrix,
                      bool accumulate) {
  if (to.count == 0) return;
  const uint8_t* sources[kRepairMissingMax];
  for (size_t s = 0; s < from.count; s++) sources[s] = payload(from.of[s]);
  for (size_t o = 0; o < to.count; o++) {
    const uint8_t* row = matrix.row(to.of[o]);
    uint8_t* factors = factors_.row(o);
    for (size_t s = 0; s < from.count; s++) factors[s] = row[from.of[s]];
  }
  engine_->multiply({outputs, to.count, sources, from.count, factors_.row(0), factors_.stride(), symbolBytes_, accumulate});
}

}  // namespace tributary::detail
