/** Decoder: checks arguments and passes the symbols of one generation to a Solver. */
#include <cstring>

#include "checks.h"
#include "tributary/codec.h"

namespace tributary {
namespace {

constexpr size_t kCacheLine = 64;
/** A processor can fetch only a limited number of cache lines at once. */
constexpr size_t kPrefetchBytes = 2048;

/** Starts to fetch bytes that are read soon. */
void prefetch(const uint8_t* bytes, size_t count) {
#if defined(__GNUC__) && !defined(__wasm__)
  const size_t end = count < kPrefetchBytes ? count : kPrefetchBytes;
  for (size_t i = 0; i < end; i += kCacheLine) __builtin_prefetch(bytes + i);
#else
  static_cast<void>(bytes), static_cast<void>(count);
#endif
}

}  // namespace

Status Decoder::initialize(const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes) {
  TRIBUTARY_TRY(checkShape(symbolCount, symbolBytes));
  setShape(symbolCount, symbolBytes);
  return solver_.initialize(engine, symbolCount, symbolBytes);
}

bool Decoder::add(const uint8_t* coefficients, const uint8_t* payload) {
  // The elimination waits for one latency after another. The payload arrives during that time.
  prefetch(payload, symbolBytes());
  uint8_t* const place = solver_.add(coefficients);
  if (place == nullptr) return false;
  memcpy(place, payload, symbolBytes());
  if (solver_.isDue()) solver_.settle();
  return true;
}

Status Decoder::isDecoded(uint32_t index, bool& decoded) const {
  TRIBUTARY_TRY(checkRange("index", index, 0, symbolCount() - 1));
  decoded = solver_.determines(index);
  return {};
}

Status Decoder::read(uint32_t firstIndex, uint32_t count, Bytes out) const {
  TRIBUTARY_TRY(checkRange("firstIndex", firstIndex, 0, symbolCount() - 1));
  TRIBUTARY_TRY(checkRange("count", count, 1, symbolCount() - firstIndex));
  TRIBUTARY_TRY(checkExact("out", out.size(), uint64_t{count} * symbolBytes()));
  for (uint32_t i = firstIndex; i < firstIndex + count; i++) {
    if (!solver_.determines(i)) return misuse("notDecoded", i, rank());
  }
  if (count == symbolCount()) {
    solver_.readAll(out.data());
    return {};
  }
  uint8_t* to = out.data();
  for (uint32_t i = firstIndex; i < firstIndex + count; i++, to += symbolBytes()) {
    memcpy(to, solver_.symbol(i), symbolBytes());
  }
  return {};
}

}  // namespace tributary
