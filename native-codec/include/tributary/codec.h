/**
 * Random linear network coding over GF(2^8), polynomial 0x11D: the whole public C++ surface. Words: RFC 8406.
 * It knows neither Node nor WebAssembly, starts no thread and throws no exception.
 *
 * A generation is `symbolCount` source symbols (1..256) of `symbolBytes` bytes each (1..65536). Inside, symbols are
 * rows that start on 64-byte boundaries, padded with zeros to a multiple of 64 bytes:
 *
 *     row 0   [ symbolBytes ......... | zeros to 64 ]  stride: a multiple of 64, kept off multiples of 4096,
 *     row 1   [ symbolBytes ......... | zeros to 64 ]  where all rows would fall into the same cache sets
 *
 * Callers' buffers need no alignment and no padding: exactly the named bytes are read or written.
 * Each object is used by one thread at a time, but for what is const in Encoder; different objects are independent.
 */
#ifndef TRIBUTARY_CODEC_H_
#define TRIBUTARY_CODEC_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tributary {

inline constexpr uint32_t kSymbolCountMax = 256;
inline constexpr uint32_t kSymbolBytesMax = 65536;
/** Whole-chunk repair: symbols of a block, and how many of them may be missing when coded symbols come. */
inline constexpr uint32_t kRepairSymbolCountMax = 65536;
inline constexpr uint32_t kRepairMissingMax = 512;

using ConstBytes = std::span<const uint8_t>;
using Bytes = std::span<uint8_t>;

/**
 * The outcome of a call: `what`, an argument's name or what follows, was `got`, where `limit` is the nearest value
 * allowed. A call that fails changes nothing that can be seen.
 *
 *     memoryBytes   kOutOfMemory: so many were asked for
 *     notDecoded    the index of a symbol to be read that is not determined; the limit is how many are known
 *     rank          recoding before there is anything to recode
 *     missing       coded symbols for a block of which too much is missing
 */
struct [[nodiscard]] Status {
  enum class Code : uint8_t { kOk, kMisuse, kOutOfMemory };

  Code code = Code::kOk;
  const char* what = "";
  uint64_t got = 0;
  uint64_t limit = 0;

  bool ok() const { return code == Code::kOk; }
};

/** One way to multiply in the field: portable code or one instruction set. */
struct Engine;

/** The engine's name, e.g. `gfni512`; all of them: README.md. */
const char* engineName(const Engine& engine);

/** The engines that this build has and this processor can run, fastest first. Never empty. */
std::span<const Engine* const> availableEngines();

/** The available engine of that name, or nullptr. */
const Engine* findEngine(std::string_view name);

/**
 * Fills `out` (at least one byte) with the coding coefficients that `seed` stands for: docs/spec/protocol.md §5.3.
 * Words 1, 2, 3, ... of SplitMix64 started at `seed`, each giving eight bytes, the lowest first. Words of a vector
 * are used up from its first byte on; a vector of nothing but zeros is dropped and the next word starts a new one.
 */
void coefficientsOf(uint32_t seed, Bytes out);

namespace detail {

/** What uninitialized rows may not do is be read before they are written; their padding is read, and does not matter.
 */
enum class Fill : uint8_t { kZeros, kNothing };

/** Rows in one allocation, laid out as above. */
class Rows {
 public:
  Rows() = default;
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  ~Rows();

  /** In place of the rows there were. */
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
 * The coefficient vectors received so far, in reduced row echelon form, inverted in place: row p is the row whose pivot
 * is column p (zeros while there is none). At columns that are no pivot it holds what is left of the coefficients, at
 * pivot columns q what it takes of payload q, the payload of the symbol that made q a pivot:
 *
 *     symbol p + sum over columns c that are no pivot of row[c] x symbol c = sum over pivots q of row[q] x payload q
 *
 * No payload is touched here.
 */
class Elimination {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  Status initialize(const Engine& engine, size_t symbolCount);
  void reset();
  size_t rank() const { return rank_; }
  /** The column that `coefficients` (symbolCount bytes) made a pivot; kNone when they did not raise the rank. */
  size_t add(const uint8_t* coefficients);
  bool isPivot(size_t column) const { return pivots_[column] != 0; }
  /** True when source symbol `index` is determined by what was received. */
  bool determines(size_t index) const;
  /** True when payload `index` is source symbol `index` as it stands. */
  bool isPlain(size_t index) const;
  /** Row p of the matrix at row p. */
  const Rows& rows() const { return rows_; }
  /** From now on payload p stands for the right side of row p's equation. */
  void rebase();

 private:
  void adopt(const uint8_t* reduced, size_t pivot);

  const Engine* engine_ = nullptr;
  size_t symbolCount_ = 0;
  size_t wordBytes_ = 0;
  size_t rank_ = 0;
  /** Beyond the last pivot. */
  size_t usedRows_ = 0;
  /** The first column that is no pivot; symbolCount_ at full rank. */
  size_t firstFree_ = 0;
  Rows rows_;
  /** Bytes of ones at pivot columns. */
  uint8_t* pivots_ = nullptr;
};

/**
 * Solves for the source symbols. Coefficients are eliminated at once; payloads are multiplied later, a batch of fresh
 * ones at a time ("settling"), the last batch of a generation small, so that little is left to do when it is complete;
 * a small generation all at once.
 */
class Solver {
 public:
  /** symbolCount up to kRepairMissingMax. */
  Status initialize(const Engine& engine, size_t symbolCount, size_t symbolBytes);
  void reset();
  size_t rank() const { return elimination_.rank(); }
  /** Where the payload of an innovative symbol belongs, to be written before any other call; nullptr for others. */
  uint8_t* add(const uint8_t* coefficients);
  /** True when there is enough to settle that waiting would not save work. */
  bool isDue() const;
  void settle();
  bool determines(size_t index) const { return elimination_.determines(index); }
  /** A determined source symbol. Settles when it has to. */
  const uint8_t* symbol(size_t index);
  /** All source symbols, one after another, at full rank. What is not settled is computed straight into `out`. */
  void readAll(uint8_t* out);

 private:
  /** Rows to take or to write, and how many. */
  struct Columns {
    uint16_t of[kRepairMissingMax];
    size_t count = 0;
    void add(size_t column) { of[count++] = static_cast<uint16_t>(column); }
    /** True when they follow one another. */
    bool isRun() const;
  };

  void forgetPayloads();
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
  /** Two for each symbol: one in use, the other for its new value. */
  Rows payloads_;
  /** The matrix as it stood after the last settling, then as many rows for the coefficients of one product. */
  Rows settledMatrix_;
  /** Pivots whose payloads are as received, in the order they came. */
  Columns fresh_;
  /** Which payloads those are. Of this and of side_ only the first symbolCount_ entries are ever set. */
  bool isFresh_[kRepairMissingMax];
  /** True when the right sides of the fresh rows are computed, and not yet taken off the settled ones. */
  bool freshIsSolved_ = false;
  /** Which of its two rows a payload is in. */
  uint8_t side_[kRepairMissingMax];
  /** False while all symbols came as they are. */
  bool hasCoded_ = false;
};

/** What Decoder and Recoder have in common: they take symbols in and count degrees of freedom. */
class Collector {
 public:
  /** Each sets `innovative` to whether the symbol raised the rank. `payload` has symbolBytes bytes. */
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
  /** Takes a symbol of the right lengths in; true when it was innovative. */
  virtual bool add(const uint8_t* coefficients, const uint8_t* payload) = 0;

  uint32_t symbolCount_ = 0;
  uint32_t symbolBytes_ = 0;
};

}  // namespace detail

/** Makes coded symbols of a generation it holds. Unset source symbols are zero. */
class Encoder {
 public:
  /** Called once, before all else. */
  Status initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes);
  /** Sets source symbols from `firstIndex` on. `bytes` (at least one) is cut into symbols, the last padded with zeros.
   */
  Status setSymbols(uint32_t firstIndex, ConstBytes bytes);
  /** One coded symbol for each seed (at least one), one after another in `out` (seeds x symbolBytes bytes). */
  Status encodeSeeds(std::span<const uint32_t> seeds, Bytes out) const;
  /** The coded symbol of `coefficients` (symbolCount bytes) in `out` (symbolBytes bytes). */
  Status encodeVector(ConstBytes coefficients, Bytes out) const;
  uint32_t symbolCount() const { return symbolCount_; }
  uint32_t symbolBytes() const { return symbolBytes_; }

 private:
  void encode(const uint8_t* coefficients, size_t outputCount, uint8_t* out) const;
  void encodeOne(const uint8_t* coefficients, uint8_t* out) const;
  bool turnsAround() const;

  const Engine* engine_ = nullptr;
  uint32_t symbolCount_ = 0;
  uint32_t symbolBytes_ = 0;
  detail::Rows sources_;
  const uint8_t* sourceRows_[kSymbolCountMax] = {};
  /** The way the last pass over the sources went: engine.h. Threads may encode at once; any order of theirs will do. */
  mutable std::atomic<bool> fromEnd_ = false;
};

/**
 * Recovers the source symbols. Coefficient vectors are eliminated as they come, so that the rank and the determined
 * symbols are always known; payloads are stored, and multiplied in batches as they come, or when they are read. A read
 * of all symbols at once computes what is left straight into the caller's buffer, and again when it is repeated; any
 * other read computes each symbol once. Costs: README.md.
 */
class Decoder final : public detail::Collector {
 public:
  /** Called once, before all else. */
  Status initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes);
  /** Forgets all symbols and keeps the memory: ready for another generation of the same shape. */
  void reset() { solver_.reset(); }
  uint32_t rank() const { return static_cast<uint32_t>(solver_.rank()); }
  /** Sets `decoded` to whether source symbol `index` is determined. */
  Status isDecoded(uint32_t index, bool& decoded) const;
  /** Source symbols `firstIndex` .. `firstIndex + count - 1` into `out`; misuse when one is not determined. */
  Status read(uint32_t firstIndex, uint32_t count, Bytes out) const;
  /** Where source symbol `index` lies until the next call that adds or resets; misuse when it is not determined. */
  Status symbol(uint32_t index, const uint8_t*& bytes) const;

 private:
  bool add(const uint8_t* coefficients, const uint8_t* payload) override;

  /** Reading computes what is not computed yet: nothing that a caller could see. */
  mutable detail::Solver solver_;
};

/** Makes fresh coded symbols from received ones, their coefficient vectors expressed on the source symbols. */
class Recoder final : public detail::Collector {
 public:
  /** Called once, before all else. */
  Status initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes);
  uint32_t rank() const { return static_cast<uint32_t>(elimination_.rank()); }
  /**
   * Combines the held symbols, in the order they came, with the `rank()` multipliers that `seed` stands for:
   * the vector in `outCoefficients` (symbolCount bytes), the payload in `outPayload` (symbolBytes bytes).
   * Misuse at rank 0.
   */
  Status recode(uint32_t seed, Bytes outCoefficients, Bytes outPayload) const;

 private:
  bool add(const uint8_t* coefficients, const uint8_t* payload) override;

  const Engine* engine_ = nullptr;
  detail::Elimination elimination_;
  detail::Rows payloads_;
  detail::Rows vectors_;
};

/**
 * Coded symbols over a block of many source symbols (1..65536), to repair what a receiver is missing of it. A seed
 * stands for `symbolCount` coefficients by the same rule as in a generation.
 */
class RepairEncoder final {
 public:
  /** Called once, before all else. Unset source symbols are zero. */
  Status initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes);
  /** As Encoder::setSymbols. */
  Status setSymbols(uint32_t firstIndex, ConstBytes bytes);
  /** As Encoder::encodeSeeds. Costs symbolCount x symbolBytes multiply-adds a seed; four at a time share a pass. */
  Status encodeSeeds(std::span<const uint32_t> seeds, Bytes out) const;
  uint32_t symbolCount() const { return symbolCount_; }
  uint32_t symbolBytes() const { return symbolBytes_; }

 private:
  const Engine* engine_ = nullptr;
  uint32_t symbolCount_ = 0;
  uint32_t symbolBytes_ = 0;
  detail::Rows sources_;
  /** Scratch: the coefficients of a pass. */
  mutable detail::Rows coefficients_;
};

/**
 * Repairs a block: source symbols come as they are until few are missing, then coded symbols, and late source symbols
 * among them. Known symbols are taken off the coded ones as they come, four to a pass; the missing ones are a
 * generation of their own. Costs and the choice of block size: README.md.
 */
class RepairDecoder final {
 public:
  /** Called once, before all else. */
  Status initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes);
  /** Sets `innovative` to whether source symbol `index` was missing. `payload` has symbolBytes bytes. */
  Status addSource(uint32_t index, ConstBytes payload, bool& innovative);
  /** The coded symbol of `seed`. Misuse ("missing") while more than kRepairMissingMax source symbols are missing. */
  Status addSeeded(uint32_t seed, ConstBytes payload, bool& innovative);
  /** Innovative symbols that are still to come; at 0 every symbol is determined. */
  uint32_t missingCount() const;
  Status isDecoded(uint32_t index, bool& decoded) const;
  /** As Decoder::read. */
  Status read(uint32_t firstIndex, uint32_t count, Bytes out);
  /** As Decoder::symbol. */
  Status symbol(uint32_t index, const uint8_t*& bytes);
  uint32_t symbolCount() const { return symbolCount_; }
  uint32_t symbolBytes() const { return symbolBytes_; }

 private:
  static constexpr size_t kPendingMax = 4;

  Status startCoded();
  bool addToSolver(const uint8_t* coefficients, const uint8_t* payload);
  void takeKnownOffPending();
  bool determines(uint32_t index) const;

  const Engine* engine_ = nullptr;
  uint32_t symbolCount_ = 0;
  uint32_t symbolBytes_ = 0;
  uint32_t knownCount_ = 0;
  /** True once a coded symbol came: `missing_` is fixed then. */
  bool hasCoded_ = false;
  uint32_t missingCount_ = 0;
  uint32_t missing_[kRepairMissingMax] = {};
  detail::Rows sources_;
  /** For each source symbol: 0 known, else one more than its place in `missing_`; kUnknown before that is fixed. */
  detail::Rows states_;
  /** Coefficients of coded symbols from which the known ones are still to be taken off, and their payloads. */
  detail::Rows coefficients_;
  uint8_t* pending_[kPendingMax] = {};
  size_t pendingCount_ = 0;
  detail::Solver solver_;
};

}  // namespace tributary

#endif  // TRIBUTARY_CODEC_H_
