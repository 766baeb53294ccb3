/** Draws coding coefficients from a seed: docs/spec/protocol.md §5.3. SplitMix64: Steele, Lea and Flood, OOPSLA 2014.
 */
#include <bit>
#include <cstring>

#include "tributary/codec.h"

namespace tributary {
namespace {

constexpr uint64_t kGamma = 0x9E3779B97F4A7C15;

/** The multiplications make the stream nonlinear over GF(2). A linear one makes dependent vectors too often. */
uint64_t mixed(uint64_t state) {
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EB;
  return state ^ (state >> 31);
}

/** Returns `word` with its lowest byte first in memory. */
uint64_t littleEndian(uint64_t word) {
  return std::endian::native == std::endian::little ? word : __builtin_bswap64(word);
}

/** Fills `out` from the stream at `state`, and advances it by whole words. Returns true if a byte is not zero. */
bool fill(uint64_t& state, Bytes out) {
  uint64_t seen = 0;
  for (size_t i = 0; i < out.size(); i += sizeof(uint64_t)) {
    uint64_t word = mixed(state += kGamma);
    const size_t left = out.size() - i;
    if (left >= sizeof word) {
      word = littleEndian(word);
      memcpy(out.data() + i, &word, sizeof word);
      seen |= word;
    } else {
      for (size_t b = 0; b < left; b++, word >>= 8) seen |= out[i + b] = static_cast<uint8_t>(word);
    }
  }
  return seen != 0;
}

}  // namespace

void coefficientsOf(uint32_t seed, Bytes out) {
  uint64_t state = seed;
  while (!out.empty() && !fill(state, out)) {
  }
}

}  // namespace tributary
