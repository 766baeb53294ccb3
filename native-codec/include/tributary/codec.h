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
 * Each object is used by one thread at a time; different objects are independent.
 */
#ifndef TRIBUTARY_CODEC_H_
#define TRIBUTARY_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tributary {

inline constexpr uint32_t kSymbolCountMax = 256;
inline constexpr uint32_t kSymbolBytesMax = 65536;

using ConstBytes = std::span<const uint8_t>;
using Bytes = std::span<uint8_t>;

/** The outcome of a call: `what` was `got`, where `limit` is the nearest value allowed. */
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

/** The engine's name: `gfni512`, `avx2`, `ssse3`, `simd128`, `scalar` or `reference`. */
const char* engineName(const Engine& engine);

/** The engines that this build has and this processor can run, fastest first. Never empty. */
std::span<const Engine* const> availableEngines();

/** The available engine of that name, or nullptr. */
const Engine* findEngine(std::string_view name);

/**
 * Fills `out` (1..256 bytes) with the coding coefficients that `seed` stands for: docs/protocol.md §5.3.
 * Words 1, 2, 3, ... of SplitMix64 started at `seed`, each giving eight bytes, the lowest first. Words of a vector
 * are used up from its first byte on; a vector of nothing but zeros is dropped and the next word starts a new one.
 */
void coefficientsOf(uint32_t seed, Bytes out);

namespace detail {

/** Zeroed rows in one allocation, laid out as above. */
class Rows {
 public:
  Rows() = default;
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  ~Rows();

  /** Called once. */
  Status allocate(size_t rowCount, size_t rowBytes);
  uint8_t* row(size_t index) { return first_ + index * stride_; }
  const uint8_t* row(size_t index) const { return first_ + index * stride_; }
  size_t stride() const { return stride_; }

 private:
  void* memory_ = nullptr;
  uint8_t* first_ = nullptr;
  size_t stride_ = 0;
};

/**
 * The coefficient vectors received so far, as a matrix in reduced row echelon form. With a transform each row carries
 * on its right how it came from the received vectors: row = [ C (symbolCount) | T (symbolCount) ], C = T x received.
 * No payload is touched here.
 */
class Elimination {
 public:
  Status initialize(const Engine& engine, size_t symbolCount, bool withTransform);
  size_t rank() const { return rank_; }
  /** True when `coefficients` (symbolCount bytes) raised the rank. */
  bool add(const uint8_t* coefficients);
  /** True when source symbol `index` is determined by what was received. */
  bool determines(size_t index) const;
  /** With a transform, for a determined symbol: its multipliers for the `rank()` innovative vectors, in order. */
  const uint8_t* multipliersOf(size_t index) const { return rows_.row(rowOfColumn_[index]) + symbolCount_; }

 private:
  void reduce(uint8_t* incoming) const;
  void adopt(const uint8_t* incoming, size_t pivotColumn);

  const Engine* engine_ = nullptr;
  size_t symbolCount_ = 0;
  size_t rank_ = 0;
  bool withTransform_ = false;
  Rows rows_;
  uint16_t columnOfRow_[kSymbolCountMax] = {};
  uint16_t rowOfColumn_[kSymbolCountMax] = {};
};

/**
 * What Decoder and Recoder have in common: they take symbols in, keep the payloads of those that raise the rank, in the
 * order they came, and count degrees of freedom.
 */
class Collector {
 public:
  /** Each sets `innovative` to whether the symbol raised the rank. `payload` has symbolBytes bytes. */
  Status addSystematic(uint32_t index, ConstBytes payload, bool& innovative);
  Status addSeeded(uint32_t seed, ConstBytes payload, bool& innovative);
  Status addVector(ConstBytes coefficients, ConstBytes payload, bool& innovative);
  uint32_t rank() const { return static_cast<uint32_t>(elimination_.rank()); }
  uint32_t symbolCount() const { return symbolCount_; }
  uint32_t symbolBytes() const { return symbolBytes_; }

 protected:
  /** What is kept for each symbol besides its payload: how to solve for the sources, or its vector as it came. */
  enum class Keeps { kTransform, kVectors };
  Status initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes, Keeps keeps);

  const Engine* engine_ = nullptr;
  uint32_t symbolCount_ = 0;
  uint32_t symbolBytes_ = 0;
  Elimination elimination_;
  Rows payloads_;
  /** With Keeps::kVectors: beside each payload its coefficients. */
  Rows vectors_;

 private:
  bool add(const uint8_t* coefficients, const uint8_t* payload);

  Keeps keeps_ = Keeps::kTransform;
};

}  // namespace detail

/** Makes coded symbols of a generation it holds. Unset source symbols are zero. */
class Encoder {
 public:
  /** Called once, before all else. */
  Status initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes);
  /** Sets source symbols from `firstIndex` on. `bytes` (at least one) is cut into symbols, the last padded with zeros. */
  Status setSymbols(uint32_t firstIndex, ConstBytes bytes);
  /** One coded symbol for each seed (at least one), one after another in `out` (seeds x symbolBytes bytes). */
  Status encodeSeeds(std::span<const uint32_t> seeds, Bytes out) const;
  /** The coded symbol of `coefficients` (symbolCount bytes) in `out` (symbolBytes bytes). */
  Status encodeVector(ConstBytes coefficients, Bytes out) const;
  uint32_t symbolCount() const { return symbolCount_; }
  uint32_t symbolBytes() const { return symbolBytes_; }

 private:
  void encode(const uint8_t* coefficients, size_t outputCount, uint8_t* out) const;

  const Engine* engine_ = nullptr;
  uint32_t symbolCount_ = 0;
  uint32_t symbolBytes_ = 0;
  detail::Rows sources_;
};

/**
 * Recovers the source symbols. Arriving payloads are only stored; coefficient vectors are eliminated at once, so that
 * the rank and the determined symbols are always known. `read` multiplies: its cost is `rank` multiply-adds a byte for
 * a symbol that did not come as it is, and a copy for one that did; reading a symbol again costs the same again.
 */
class Decoder : public detail::Collector {
 public:
  /** Called once, before all else. */
  Status initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes);
  /** Sets `decoded` to whether source symbol `index` is determined. */
  Status isDecoded(uint32_t index, bool& decoded) const;
  /** Source symbols `firstIndex` .. `firstIndex + count - 1` into `out`; misuse when one is not determined. */
  Status read(uint32_t firstIndex, uint32_t count, Bytes out) const;

 private:
  const uint8_t* payloadOf(uint32_t index) const;
  void solve(const uint16_t* symbols, size_t count, uint32_t firstIndex, uint8_t* out) const;
};

/** Makes fresh coded symbols from received ones, their coefficient vectors expressed on the source symbols. */
class Recoder : public detail::Collector {
 public:
  /** Called once, before all else. */
  Status initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes);
  /**
   * Combines the held symbols, in the order they came, with the `rank()` multipliers that `seed` stands for:
   * the vector in `outCoefficients` (symbolCount bytes), the payload in `outPayload` (symbolBytes bytes).
   * Misuse at rank 0.
   */
  Status recode(uint32_t seed, Bytes outCoefficients, Bytes outPayload) const;
};

}  // namespace tributary

#endif  // TRIBUTARY_CODEC_H_
