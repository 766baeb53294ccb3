/** Whole-chunk repair: products over thousands of source rows, and a Solver for the missing ones. */
#include <cstring>

#include "checks.h"
#include "engine.h"
#include "tributary/codec.h"

namespace tributary {
namespace {

using detail::Fill;
using detail::Rows;

/** Coded symbols in one pass over the block. More would save little time and wait longer. */
constexpr size_t kSymbolsPerPass = 4;
/** Rows in one product. A strip of so many rows stays in the nearest cache. */
constexpr size_t kRowsPerProduct = 64;

constexpr uint16_t kKnown = 0;
constexpr uint16_t kUnknown = 0xFFFF;

uint16_t* statesIn(Rows& rows) { return reinterpret_cast<uint16_t*>(rows.row(0)); }
const uint16_t* statesIn(const Rows& rows) { return reinterpret_cast<const uint16_t*>(rows.row(0)); }

Status checkBlockShape(uint32_t symbolCount, uint32_t symbolBytes) {
  TRIBUTARY_TRY(checkRange("symbolCount", symbolCount, 1, kRepairSymbolCountMax));
  return checkRange("symbolBytes", symbolBytes, 1, kSymbolBytesMax);
}

/** Adds to outputs[o] the sum over the first `rowCount` rows r of coefficients row o [r] x row r. */
void addProduct(const Engine& engine, uint8_t* const* outputs, size_t outputCount, const Rows& rows, size_t rowCount,
                const Rows& coefficients, size_t bytes) {
  const uint8_t* sources[kRowsPerProduct];
  for (size_t first = 0; first < rowCount; first += kRowsPerProduct) {
    const size_t count = rowCount - first < kRowsPerProduct ? rowCount - first : kRowsPerProduct;
    for (size_t s = 0; s < count; s++) sources[s] = rows.row(first + s);
    engine.multiply(
        {outputs, outputCount, sources, count, coefficients.row(0) + first, coefficients.stride(), bytes, outputs});
  }
}

}  // namespace

Status RepairEncoder::initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes) {
  TRIBUTARY_TRY(checkBlockShape(symbolCount, symbolBytes));
  engine_ = &engine;
  symbolCount_ = symbolCount;
  symbolBytes_ = symbolBytes;
  TRIBUTARY_TRY(coefficients_.allocate(kSymbolsPerPass, symbolCount, Fill::kNothing));
  return sources_.allocate(symbolCount, symbolBytes, Fill::kZeros);
}

Status RepairEncoder::setSymbols(uint32_t firstIndex, ConstBytes bytes) {
  return setRows(sources_, symbolCount_, symbolBytes_, firstIndex, bytes);
}

Status RepairEncoder::encodeSeeds(std::span<const uint32_t> seeds, Bytes out) const {
  TRIBUTARY_TRY(checkRange("seeds", seeds.size(), 1, UINT32_MAX));
  TRIBUTARY_TRY(checkExact("out", out.size(), uint64_t{seeds.size()} * symbolBytes_));
  memset(out.data(), 0, out.size());
  for (size_t first = 0; first < seeds.size(); first += kSymbolsPerPass) {
    const size_t count = seeds.size() - first < kSymbolsPerPass ? seeds.size() - first : kSymbolsPerPass;
    uint8_t* outputs[kSymbolsPerPass];
    for (size_t o = 0; o < count; o++) {
      coefficientsOf(seeds[first + o], {coefficients_.row(o), symbolCount_});
      outputs[o] = out.data() + (first + o) * symbolBytes_;
    }
    addProduct(*engine_, outputs, count, sources_, symbolCount_, coefficients_, symbolBytes_);
  }
  return {};
}

Status RepairDecoder::initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes) {
  TRIBUTARY_TRY(checkBlockShape(symbolCount, symbolBytes));
  engine_ = &engine;
  symbolCount_ = symbolCount;
  symbolBytes_ = symbolBytes;
  TRIBUTARY_TRY(states_.allocate(1, symbolCount * sizeof(uint16_t), Fill::kNothing));
  memset(states_.row(0), 0xFF, symbolCount * sizeof(uint16_t));
  TRIBUTARY_TRY(coefficients_.allocate(kPendingMax, symbolCount, Fill::kNothing));
  return sources_.allocate(symbolCount, symbolBytes, Fill::kNothing);
}

uint32_t RepairDecoder::missingCount() const {
  return hasCoded_ ? missingCount_ - static_cast<uint32_t>(solver_.rank()) : symbolCount_ - knownCount_;
}

Status RepairDecoder::addSource(uint32_t index, ConstBytes payload, bool& innovative) {
  TRIBUTARY_TRY(checkRange("index", index, 0, symbolCount_ - 1));
  TRIBUTARY_TRY(checkExact("payload", payload.size(), symbolBytes_));
  uint16_t& state = statesIn(states_)[index];
  innovative = state != kKnown;
  if (state == kUnknown) {
    memcpy(sources_.row(index), payload.data(), symbolBytes_);
    state = kKnown;
    knownCount_++;
  } else if (state != kKnown) {
    takeKnownOffPending();
    uint8_t coefficients[kRepairMissingMax] = {};
    coefficients[state - 1] = 1;
    innovative = addToSolver(coefficients, payload.data());
    if (solver_.isDue()) solver_.settle();
  }
  return {};
}

Status RepairDecoder::addSeeded(uint32_t seed, ConstBytes payload, bool& innovative) {
  TRIBUTARY_TRY(checkExact("payload", payload.size(), symbolBytes_));
  TRIBUTARY_TRY(checkRange("missing", missingCount(), 0, kRepairMissingMax));
  innovative = false;
  if (missingCount() == 0) return {};
  TRIBUTARY_TRY(startCoded());
  uint8_t* all = coefficients_.row(pendingCount_);
  coefficientsOf(seed, {all, symbolCount_});
  uint8_t ofMissing[kRepairMissingMax];
  for (uint32_t m = 0; m < missingCount_; m++) {
    ofMissing[m] = all[missing_[m]];
    all[missing_[m]] = 0;
  }
  uint8_t* const place = solver_.add(ofMissing);
  if (place == nullptr) return {};
  innovative = true;
  memcpy(place, payload.data(), symbolBytes_);
  pending_[pendingCount_++] = place;
  if (pendingCount_ == kPendingMax) {
    takeKnownOffPending();
    if (solver_.isDue()) solver_.settle();
  }
  return {};
}

/** Starts the solver at the first coded symbol. The symbols that are missing now are its unknowns. */
Status RepairDecoder::startCoded() {
  if (hasCoded_) return {};
  const uint32_t count = missingCount();
  TRIBUTARY_TRY(solver_.initialize(*engine_, count, symbolBytes_));
  uint16_t* states = statesIn(states_);
  for (uint32_t i = 0; i < symbolCount_; i++) {
    if (states[i] == kKnown) continue;
    missing_[missingCount_++] = i;
    states[i] = static_cast<uint16_t>(missingCount_);
  }
  hasCoded_ = true;
  return {};
}

bool RepairDecoder::addToSolver(const uint8_t* coefficients, const uint8_t* payload) {
  uint8_t* const place = solver_.add(coefficients);
  if (place != nullptr) memcpy(place, payload, symbolBytes_);
  return place != nullptr;
}

/** Subtracts the known symbols from the pending ones. Missing rows have coefficient 0, so no row is gathered. */
void RepairDecoder::takeKnownOffPending() {
  if (pendingCount_ == 0) return;
  addProduct(*engine_, pending_, pendingCount_, sources_, symbolCount_, coefficients_, symbolBytes_);
  pendingCount_ = 0;
}

bool RepairDecoder::determines(uint32_t index) const {
  const uint16_t state = statesIn(states_)[index];
  return state == kKnown || (hasCoded_ && solver_.determines(state - 1u));
}

Status RepairDecoder::isDecoded(uint32_t index, bool& decoded) const {
  TRIBUTARY_TRY(checkRange("index", index, 0, symbolCount_ - 1));
  decoded = determines(index);
  return {};
}

/** Returns a determined source symbol. */
const uint8_t* RepairDecoder::symbol(uint32_t index) {
  const uint16_t state = statesIn(states_)[index];
  if (state == kKnown) return sources_.row(index);
  takeKnownOffPending();
  return solver_.symbol(state - 1u);
}

Status RepairDecoder::read(uint32_t firstIndex, uint32_t count, Bytes out) {
  TRIBUTARY_TRY(checkRange("firstIndex", firstIndex, 0, symbolCount_ - 1));
  TRIBUTARY_TRY(checkRange("count", count, 1, symbolCount_ - firstIndex));
  TRIBUTARY_TRY(checkExact("out", out.size(), uint64_t{count} * symbolBytes_));
  for (uint32_t i = firstIndex; i < firstIndex + count; i++) {
    if (!determines(i)) return misuse("notDecoded", i, symbolCount_ - missingCount());
  }
  for (uint32_t i = 0; i < count; i++) {
    memcpy(out.data() + size_t{i} * symbolBytes_, symbol(firstIndex + i), symbolBytes_);
  }
  return {};
}

}  // namespace tributary
