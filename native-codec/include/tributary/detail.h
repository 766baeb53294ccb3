/** The private parts of the coders in codec.h: memory, elimination and solving. Callers do not use them. */
#ifndef TRIBUTARY_DETAIL_H_
#define TRIBUTARY_DETAIL_H_

#include "tributary/status.h"

namespace tributary::detail {

/** The first content of new rows. kNothing: a row is undefined until it is written; its padding stays undefined. */
enum class Fill : uint8_t { kZeros, kNothing };

/** Rows in one allocation, in the layout of codec.h. */
class Rows {
 public:
  Rows() = default;
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  ~Rows();

  /** Replaces the rows. */
  Status allocate(size_t rowCount, size_t rowBytes, Fill fill);
  uint8_t* row(size_t index) { return first_ + index * stride_; }
  const uint8_t* row(size_t index) const { return first_ + index * stride_; }
  size_t stride() const { return stride_; }

 private:
  void* memory_ = nullptr;
  uint8_t* first_ = nullptr;
  size_t stride_ = 0;
};

/**
 * The coefficient vectors received so far, in reduced row echelon form, inverted in place. It touches no payload.
 *
 * Row p belongs to pivot column p; it is zero while column p is no pivot. At a column c that is no pivot, the row holds
 * the coefficient that is left. At a pivot column q, it holds the factor of payload q, which is the payload of the
 * symbol that made q a pivot. So each row is an equation:
 *
 *     symbol p + sum over columns c that are no pivot of row[c] x symbol c = sum over pivots q of row[q] x payload q
 */
class Elimination {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  Status initialize(const Engine& engine, size_t symbolCount);
  size_t rank() const { return rank_; }
  /**
   * Takes `coefficients` (symbolCount bytes). Returns the column that they made a pivot, or kNone if they did not raise
   * the rank.
   */
  size_t add(const uint8_t* coefficients);
  bool isPivot(size_t column) const { return pivots_[column] != 0; }
  /** True if the received symbols determine source symbol `index`. */
  bool determines(size_t index) const;
  /** True if payload `index` is source symbol `index`, unchanged. */
  bool isPlain(size_t index) const;
  /** The matrix. Row p is the row of pivot p. */
  const Rows& rows() const { return rows_; }
  /** Declares that payload p is from now on the right side of row p's equation. */
  void rebase();

 private:
  void adopt(const uint8_t* reduced, size_t pivot);

  const Engine* engine_ = nullptr;
  size_t symbolCount_ = 0;
  size_t wordBytes_ = 0;
  size_t rank_ = 0;
  /** One more than the last pivot. */
  size_t usedRows_ = 0;
  /** The first column that is no pivot; symbolCount_ at full rank. */
  size_t firstFree_ = 0;
  Rows rows_;
  /** One byte for each column: 0xFF at pivots, 0 elsewhere. */
  uint8_t* pivots_ = nullptr;
};

/**
 * Solves for the source symbols. It eliminates coefficients when a symbol arrives. It multiplies payloads later, in
 * batches of fresh ones ("settling"). The last batch is small, so that little work is left when the generation is
 * complete. A small generation settles once.
 */
class Solver {
 public:
  /** `symbolCount` is at most kRepairMissingMax. */
  Status initialize(const Engine& engine, size_t symbolCount, size_t symbolBytes);
  size_t rank() const { return elimination_.rank(); }
  /**
   * Takes a symbol's coefficients. Returns the place for its payload if it is innovative, else nullptr. The caller
   * writes the payload before any other call.
   */
  uint8_t* add(const uint8_t* coefficients);
  /** True if enough payloads are fresh that waiting for more would not save work. */
  bool isDue() const;
  void settle();
  bool determines(size_t index) const { return elimination_.determines(index); }
  /** Returns a determined source symbol. Settles if it must. */
  const uint8_t* symbol(size_t index);
  /** Writes all source symbols, one after another, at full rank. Computes unsettled ones directly into `out`. */
  void readAll(uint8_t* out);

 private:
  /** A list of columns, each with its row and payload. */
  struct Columns {
    uint16_t of[kRepairMissingMax];
    size_t count = 0;
    void add(size_t column) { of[count++] = static_cast<uint16_t>(column); }
    /** True if the columns follow one another without a gap. */
    bool isRun() const;
  };

  void solveFresh();
  void multiplyHeld(uint8_t* const* outputs, const Columns& to);
  void findUnsolved(Columns& unsolved) const;
  void findTouched(Columns& touched) const;
  void multiply(uint8_t* const* outputs, const uint8_t* const* addends, const Columns& to, const Columns& from,
                const Rows& matrix);
  void gatherFactors(const Columns& to, const Columns& from, const Rows& matrix);
  uint8_t* payload(size_t index) { return payloads_.row(2 * index + side_[index]); }
  uint8_t* spare(size_t index) { return payloads_.row(2 * index + (side_[index] ^ 1)); }

  const Engine* engine_ = nullptr;
  size_t symbolCount_ = 0;
  size_t symbolBytes_ = 0;
  Elimination elimination_;
  /** Two rows for each symbol: one holds the payload, the other is spare, for its next value. */
  Rows payloads_;
  /** The matrix after the last settling, followed by as many rows for the coefficients of one product. */
  Rows settledMatrix_;
  /** The pivots whose payloads are as received, in order of arrival. */
  Columns fresh_;
  /** True for the columns in fresh_. Only the first symbolCount_ entries of isFresh_ and side_ are initialized. */
  bool isFresh_[kRepairMissingMax];
  /** True if the right sides of the fresh rows are computed but not yet subtracted from the settled rows. */
  bool freshIsSolved_ = false;
  /** Which of its two rows holds a payload. */
  uint8_t side_[kRepairMissingMax];
  /** False while every symbol is a source symbol. */
  bool hasCoded_ = false;
};

/** The common part of Decoder and Recoder: it collects symbols and counts degrees of freedom. */
class Collector {
 public:
  /** Each sets `innovative` to true if the symbol raised the rank. `payload` has symbolBytes bytes. */
  Status addSystematic(uint32_t index, ConstBytes payload, bool& innovative);
  Status addSeeded(uint32_t seed, ConstBytes payload, bool& innovative);
  Status addVector(ConstBytes coefficients, ConstBytes payload, bool& innovative);
  uint32_t symbolCount() const { return symbolCount_; }
  uint32_t symbolBytes() const { return symbolBytes_; }

 protected:
  Collector() = default;
  ~Collector() = default;
  void setShape(uint32_t symbolCount, uint32_t symbolBytes);

 private:
  /** Takes a symbol whose lengths are right. Returns true if it was innovative. */
  virtual bool add(const uint8_t* coefficients, const uint8_t* payload) = 0;

  uint32_t symbolCount_ = 0;
  uint32_t symbolBytes_ = 0;
};

}  // namespace tributary::detail

#endif  // TRIBUTARY_DETAIL_H_
