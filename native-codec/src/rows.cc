/** Rows: aligned, padded memory. Only this file of the core allocates. */
#include <cstdlib>

#include "engine.h"
#include "tributary/codec.h"

namespace tributary::detail {
namespace {

/** Rows at this distance share the same cache sets. */
constexpr size_t kSetStride = 4096;

size_t strideFor(size_t rowBytes) {
  const size_t padded = (rowBytes + kRowPadding - 1) / kRowPadding * kRowPadding;
  return padded % kSetStride == 0 ? padded + kRowPadding : padded;
}

}  // namespace

Rows::~Rows() { free(memory_); }

Status Rows::allocate(size_t rowCount, size_t rowBytes, Fill fill) {
  stride_ = strideFor(rowBytes);
  const size_t bytes = rowCount * stride_ + kRowPadding - 1;
  free(memory_);
  memory_ = fill == Fill::kZeros ? calloc(bytes, 1) : malloc(bytes);
  if (memory_ == nullptr) return {Status::Code::kOutOfMemory, "memoryBytes", bytes, 0};
  const uintptr_t address = reinterpret_cast<uintptr_t>(memory_);
  first_ = static_cast<uint8_t*>(memory_) + (kRowPadding - address % kRowPadding) % kRowPadding;
  return {};
}

}  // namespace tributary::detail
