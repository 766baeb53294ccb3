/**
 * Runs a kernel on the host, one block after another, for tests of its arithmetic. A thread of a block is a fiber.
 * Fibers change only at waitForBlock and at the operations of a warp, where each lane leaves its operands for the
 * others.
 */
#ifndef TRIBUTARY_GPU_HOST_SIMT_H_
#define TRIBUTARY_GPU_HOST_SIMT_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#define TRIBUTARY_KERNEL(threads, blocks) void
#define TRIBUTARY_DEVICE inline
#define TRIBUTARY_TABLE constexpr
#define TRIBUTARY_UNROLL(count)

namespace tributary::gpu {

struct uint2 {
  uint32_t x, y;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
struct Dimension {
  uint32_t x;
};

namespace host {

/** What a lane leaves for the other lanes of its warp. */
struct Operands {
  uint32_t of[6];
};

/** Runs `kernel` for each thread of each block. */
void launch(uint32_t blocks, uint32_t threads, size_t sharedBytes, const std::function<void()>& kernel);

/** Waits for all threads of the block. */
void waitForBlock();
/** Waits for all lanes of the warp. Returns what each of them left, valid until this lane's next call. */
const Operands* exchange(const Operands& own);
uint4* sharedMemory();
Dimension threadIndex();
Dimension blockIndex();

}  // namespace host

#define threadIdx (::tributary::gpu::host::threadIndex())
#define blockIdx (::tributary::gpu::host::blockIndex())

using host::sharedMemory;
using host::waitForBlock;

inline uint2 make_uint2(uint32_t x, uint32_t y) { return {x, y}; }
inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }

inline uint32_t shuffleXor(uint32_t value, int mask) {
  return host::exchange({{value}})[(threadIdx.x & 31) ^ static_cast<uint32_t>(mask)].of[0];
}

inline uint32_t bytePermute(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t both = a | uint64_t{b} << 32;
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; i++) result |= static_cast<uint32_t>(both >> (selector >> 4 * i & 7) * 8 & 0xFF) << 8 * i;
  return result;
}

/** The element of A at `row` and `k`, and of B at `k` and `column`, where PTX puts them. */
inline uint32_t elementOfA(const host::Operands* lanes, uint32_t row, uint32_t k) {
  const uint32_t lane = row % 8 * 4 + k % 16 / 4;
  return lanes[lane].of[row / 8 + k / 16 * 2] >> k % 4 * 8 & 0xFF;
}
inline uint32_t elementOfB(const host::Operands* lanes, uint32_t k, uint32_t column) {
  return lanes[column * 4 + k % 16 / 4].of[4 + k / 16] >> k % 4 * 8 & 0xFF;
}

template <bool first>
inline void multiplyTile(uint32_t (&d)[4], const uint32_t (&a)[4], uint2 b) {
  const host::Operands* lanes = host::exchange({{a[0], a[1], a[2], a[3], b.x, b.y}});
  const uint32_t lane = threadIdx.x & 31;
  for (uint32_t i = 0; i < 4; i++) {
    const uint32_t row = lane / 4 + i / 2 * 8;
    const uint32_t column = lane % 4 * 2 + i % 2;
    uint32_t sum = first ? 0 : d[i];
    for (uint32_t k = 0; k < 32; k++) sum += elementOfA(lanes, row, k) * elementOfB(lanes, k, column);
    d[i] = sum;
  }
}

}  // namespace tributary::gpu

#endif  // TRIBUTARY_GPU_HOST_SIMT_H_
