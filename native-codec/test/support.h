/** Helpers of the core's tests: allocations that fail on demand, random numbers, blocks of an exact size. */
#ifndef TRIBUTARY_TEST_SUPPORT_H_
#define TRIBUTARY_TEST_SUPPORT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "tributary/codec.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace tributary::test {

/** Calls `report` before a sanitizer ends the process. */
inline void onDeath([[maybe_unused]] void (*report)()) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback(report);
#endif
}

/**
 * How many more allocations of the core succeed before all fail. Negative: none fails. support.cc replaces the core's
 * malloc and calloc.
 */
inline int allocationsLeft = -1;

/** SplitMix64. Equal seeds give equal cases. */
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0xD1342543DE82EF95 + 1) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  /** A number from 0 to `bound` - 1. */
  size_t below(size_t bound) { return next() % bound; }
  /** A size from 1 to `most`, usually a small one. */
  size_t size(size_t most) { return 1 + below(below(8) == 0 ? most : 1 + below(most < 70 ? most : 70)); }

 private:
  uint64_t state_;
};

/** A heap block of exactly `size` bytes. AddressSanitizer sees each access beyond it. */
struct Block {
  explicit Block(size_t size) : size(size), bytes(new uint8_t[size]) { memset(bytes.get(), 0xA5, size); }
  Block(Random& random, size_t size) : Block(size) {
    for (size_t i = 0; i < size; i++) bytes[i] = static_cast<uint8_t>(random.next());
  }
  operator ConstBytes() const { return {bytes.get(), size}; }
  operator Bytes() { return {bytes.get(), size}; }
  uint8_t& operator[](size_t i) { return bytes[i]; }
  uint8_t operator[](size_t i) const { return bytes[i]; }
  bool operator==(const Block& other) const {
    return size == other.size && memcmp(bytes.get(), other.bytes.get(), size) == 0;
  }

  size_t size;
  std::unique_ptr<uint8_t[]> bytes;
};

}  // namespace tributary::test

#endif  // TRIBUTARY_TEST_SUPPORT_H_
