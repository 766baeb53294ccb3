/** The types that every call of the codec uses: byte spans, limits, and the Status that a call returns. */
#ifndef TRIBUTARY_STATUS_H_
#define TRIBUTARY_STATUS_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace tributary {

using ConstBytes = std::span<const uint8_t>;
using Bytes = std::span<uint8_t>;

/** Limits of a generation. */
inline constexpr uint32_t kSymbolCountMax = 256;
inline constexpr uint32_t kSymbolBytesMax = 65536;
/** Limits of a repair block: its symbols, and how many of them may be missing when the first coded symbol arrives. */
inline constexpr uint32_t kRepairSymbolCountMax = 65536;
inline constexpr uint32_t kRepairMissingMax = 512;

/**
 * The outcome of a call. A call that fails changes nothing that a caller can see. Its status names the argument, or one
 * of the conditions below, in `what`; `got` is the value that it got, and `limit` is the nearest value allowed.
 *
 *     memoryBytes   kOutOfMemory: the allocation of `got` bytes failed
 *     notDecoded    a symbol to read is not determined: `got` is its index, `limit` the number of known symbols
 *     rank          the recoder has no symbol to combine
 *     missing       more than kRepairMissingMax symbols of a block are missing, which is too many for a coded symbol
 */
struct [[nodiscard]] Status {
  enum class Code : uint8_t { kOk, kMisuse, kOutOfMemory };

  Code code = Code::kOk;
  const char* what = "";
  uint64_t got = 0;
  uint64_t limit = 0;

  bool ok() const { return code == Code::kOk; }
};

/** A way to multiply in the field: portable code or one instruction set. codec.h lists the engines. */
struct Engine;

}  // namespace tributary

#endif  // TRIBUTARY_STATUS_H_
