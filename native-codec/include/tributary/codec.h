/**
 * Random linear network coding over GF(2^8) with polynomial 0x11D: the whole public C++ interface. Terms: RFC 8406.
 *
 * DATA LAYOUT
 *
 * A generation is `symbolCount` source symbols (1..256) of `symbolBytes` bytes each (1..65536). A repair block is the
 * same with up to 65536 symbols. A coder stores symbols as rows:
 *
 *     row 0   [ symbolBytes bytes | padding to 64 ]   each row starts on a 64-byte boundary
 *     row 1   [ symbolBytes bytes | padding to 64 ]   stride: a multiple of 64, but never of 4096,
 *     ...                                             because then all rows would share the same cache sets
 *
 * A caller's buffer needs no alignment and no padding. A coder reads or writes exactly the bytes that the call names,
 * and keeps no pointer to them. Symbols that follow one another in a buffer have no gap.
 *
 * A coded symbol is the sum of all source symbols, each times its coding coefficient:
 *
 *     coded[i] = sum over s of coefficients[s] x source[s][i]     for each byte i < symbolBytes
 *
 * A seed of 32 bits stands for a whole coefficient vector: see coefficientsOf.
 *
 * USE
 *
 * Choose an engine, initialize a coder once, then call it:
 *
 *     const Engine& engine = *availableEngines().front();
 *     Encoder encoder;
 *     Status status = encoder.initialize(engine, 24, 1100);
 *     if (status.ok()) status = encoder.setSymbols(0, chunk);
 *     if (status.ok()) status = encoder.encodeSeeds(seeds, packets);
 *
 *     Decoder decoder;          status = decoder.initialize(engine, 24, 1100);
 *     for each packet:          status = decoder.addSeeded(seed, packet, innovative);
 *     at rank 24:               status = decoder.read(0, 24, chunk);
 *
 * A proxy that has only coded symbols makes fresh ones with a Recoder. RepairEncoder and RepairDecoder repair a whole
 * chunk, most of whose source symbols arrive.
 *
 * ERRORS, MEMORY AND THREADS
 *
 * Every call that can fail returns a Status (status.h) and throws nothing. A coder allocates memory when it is
 * initialized; a RepairDecoder also with its first coded symbol. One thread at a time may use a coder, but several
 * threads may call const methods of one Encoder. Different coders are independent. The core starts no thread and knows
 * neither Node nor WebAssembly. README.md gives the costs of each coder.
 */
#ifndef TRIBUTARY_CODEC_H_
#define TRIBUTARY_CODEC_H_

#include <atomic>
#include <string_view>

#include "tributary/detail.h"
#include "tributary/status.h"

namespace tributary {

/** Returns the engine's name, for example `gfni512`. README.md lists all engines. */
const char* engineName(const Engine& engine);

/** Returns the engines that this build has and this processor can run, fastest first. Never empty. */
std::span<const Engine* const> availableEngines();

/** Returns the available engine of that name, or nullptr. */
const Engine* findEngine(std::string_view name);

/**
 * Fills `out` (at least one byte) with the coding coefficients of `seed`: docs/spec/protocol.md §5.3.
 * The coefficients are the words 1, 2, 3, ... of SplitMix64 with initial state `seed`, lowest byte first. If the bytes
 * of a vector are all zero, the next word starts a new vector.
 */
void coefficientsOf(uint32_t seed, Bytes out);

/** Makes coded symbols of a generation that it holds. Source symbols that were not set are zero. */
class Encoder {
 public:
  /** Call this once, before any other method. */
  Status initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes);
  /** Cuts `bytes` (at least one) into source symbols from `firstIndex` on. Pads the last one with zeros. */
  Status setSymbols(uint32_t firstIndex, ConstBytes bytes);
  /** Writes one coded symbol for each seed (at least one) into `out` (seeds x symbolBytes bytes). */
  Status encodeSeeds(std::span<const uint32_t> seeds, Bytes out) const;
  /** Writes the coded symbol of `coefficients` (symbolCount bytes) into `out` (symbolBytes bytes). */
  Status encodeVector(ConstBytes coefficients, Bytes out) const;
  uint32_t symbolCount() const { return symbolCount_; }
  uint32_t symbolBytes() const { return symbolBytes_; }
  /** The source symbols as rows, `sourceStride` bytes apart. */
  const uint8_t* sources() const { return sources_.row(0); }
  size_t sourceStride() const { return sources_.stride(); }

 private:
  void encode(const uint8_t* coefficients, size_t outputCount, uint8_t* out) const;
  void encodeOne(const uint8_t* coefficients, uint8_t* out) const;
  bool turnsAround() const;

  const Engine* engine_ = nullptr;
  uint32_t symbolCount_ = 0;
  uint32_t symbolBytes_ = 0;
  detail::Rows sources_;
  const uint8_t* sourceRows_[kSymbolCountMax] = {};
  /** The direction of the last pass over the sources (engine.h). It is a hint, so threads may set it in any order. */
  mutable std::atomic<bool> fromEnd_ = false;
};

/**
 * Recovers the source symbols of a generation. It eliminates coefficient vectors when they arrive, so the rank and the
 * determined symbols are always known. It stores payloads and multiplies them in batches, or when they are read. It
 * computes each symbol once. The exception is a read of all symbols: that computes what is left directly into `out`,
 * and computes it again if it is repeated.
 */
class Decoder final : public detail::Collector {
 public:
  /** Call this once, before any other method. */
  Status initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes);
  /** The degrees of freedom received, 0..symbolCount. */
  uint32_t rank() const { return static_cast<uint32_t>(solver_.rank()); }
  /** Sets `decoded` to true if source symbol `index` is determined. */
  Status isDecoded(uint32_t index, bool& decoded) const;
  /** Writes `count` source symbols (at least one) from `firstIndex` on into `out`. Fails if one is not determined. */
  Status read(uint32_t firstIndex, uint32_t count, Bytes out) const;

 private:
  bool add(const uint8_t* coefficients, const uint8_t* payload) override;

  /** A read computes what is left to compute. Callers cannot see that change. */
  mutable detail::Solver solver_;
};

/** Makes fresh coded symbols from received ones. Their coefficient vectors refer to the source symbols. */
class Recoder final : public detail::Collector {
 public:
  /** Call this once, before any other method. */
  Status initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes);
  /** The degrees of freedom received, 0..symbolCount. */
  uint32_t rank() const { return static_cast<uint32_t>(elimination_.rank()); }
  /**
   * Combines the held symbols, in order of arrival, with the rank() multipliers of `seed`. Writes the coefficient
   * vector into `outCoefficients` (symbolCount bytes) and the payload into `outPayload` (symbolBytes bytes). Fails at
   * rank 0.
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
 * Makes coded symbols over a block of many source symbols (1..65536), which repair what a receiver is missing. A seed
 * stands for `symbolCount` coefficients by the same rule as in a generation.
 */
class RepairEncoder final {
 public:
  /** Call this once, before any other method. Source symbols that are not set are zero. */
  Status initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes);
  /** Like Encoder::setSymbols. */
  Status setSymbols(uint32_t firstIndex, ConstBytes bytes);
  /** Like Encoder::encodeSeeds. A seed costs symbolCount x symbolBytes multiply-adds; four seeds share a pass. */
  Status encodeSeeds(std::span<const uint32_t> seeds, Bytes out) const;
  uint32_t symbolCount() const { return symbolCount_; }
  uint32_t symbolBytes() const { return symbolBytes_; }

 private:
  const Engine* engine_ = nullptr;
  uint32_t symbolCount_ = 0;
  uint32_t symbolBytes_ = 0;
  detail::Rows sources_;
  /** The coefficients of one pass. */
  mutable detail::Rows coefficients_;
};

/**
 * Repairs a block. Source symbols arrive first. When at most kRepairMissingMax are missing, coded symbols may arrive,
 * and late source symbols among them. The decoder subtracts the known symbols from each coded symbol, four at a time,
 * and solves for the missing ones as a generation. README.md says how to choose the size of a block.
 */
class RepairDecoder final {
 public:
  /** Call this once, before any other method. */
  Status initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes);
  /** Sets `innovative` to true if source symbol `index` was missing. `payload` has symbolBytes bytes. */
  Status addSource(uint32_t index, ConstBytes payload, bool& innovative);
  /** Takes the coded symbol of `seed`. Fails with `missing` while more than kRepairMissingMax symbols are missing. */
  Status addSeeded(uint32_t seed, ConstBytes payload, bool& innovative);
  /** How many innovative symbols are still needed. At 0 every source symbol is determined. */
  uint32_t missingCount() const;
  /** Like Decoder::isDecoded. */
  Status isDecoded(uint32_t index, bool& decoded) const;
  /** Like Decoder::read. */
  Status read(uint32_t firstIndex, uint32_t count, Bytes out);
  uint32_t symbolCount() const { return symbolCount_; }
  uint32_t symbolBytes() const { return symbolBytes_; }

 private:
  static constexpr size_t kPendingMax = 4;

  Status startCoded();
  bool addToSolver(const uint8_t* coefficients, const uint8_t* payload);
  void takeKnownOffPending();
  bool determines(uint32_t index) const;
  const uint8_t* symbol(uint32_t index);

  const Engine* engine_ = nullptr;
  uint32_t symbolCount_ = 0;
  uint32_t symbolBytes_ = 0;
  uint32_t knownCount_ = 0;
  /** True after the first coded symbol, which fixes `missing_`. */
  bool hasCoded_ = false;
  uint32_t missingCount_ = 0;
  uint32_t missing_[kRepairMissingMax] = {};
  detail::Rows sources_;
  /** For each source symbol: 0 if it is known, else its place in `missing_` plus 1; kUnknown before that is fixed. */
  detail::Rows states_;
  /** The coefficients of the pending coded symbols, from which the known symbols are not yet subtracted. */
  detail::Rows coefficients_;
  /** The payloads of the pending coded symbols. */
  uint8_t* pending_[kPendingMax] = {};
  size_t pendingCount_ = 0;
  detail::Solver solver_;
};

}  // namespace tributary

#endif  // TRIBUTARY_CODEC_H_
