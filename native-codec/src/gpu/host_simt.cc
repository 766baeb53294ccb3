/** Fibers for host_simt.h, by the contexts of POSIX. */
#include "gpu/host_simt.h"

#include <ucontext.h>

#include <memory>
#include <vector>

namespace tributary::gpu::host {
namespace {

constexpr size_t kStackBytes = 64 * 1024;
constexpr uint32_t kWarpLanes = 32;

struct Fiber {
  ucontext_t context;
  std::unique_ptr<uint8_t[]> stack;
  bool done = false;
  /** How often this thread has waited, in all and for its warp. */
  uint64_t blockWaits = 0;
  uint64_t warpWaits = 0;
};

struct Warp {
  /** Alternating, so that a lane may leave the next operands while another still reads the last. */
  Operands operands[2][kWarpLanes];
  uint64_t arrivals = 0;
};

struct Block {
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  std::vector<uint4> memory;
  uint64_t arrivals = 0;
  uint32_t thread = 0;
  uint32_t block = 0;
  ucontext_t scheduler;
  const std::function<void()>* kernel = nullptr;
};

thread_local Block* running = nullptr;

void yield() { swapcontext(&running->fibers[running->thread].context, &running->scheduler); }

void runFiber() {
  (*running->kernel)();
  running->fibers[running->thread].done = true;
  yield();
}

void start(Fiber& fiber) {
  fiber.done = false;
  fiber.blockWaits = fiber.warpWaits = 0;
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, runFiber, 0);
}

void runBlock(Block& block) {
  for (Fiber& fiber : block.fibers) start(fiber);
  for (Warp& warp : block.warps) warp.arrivals = 0;
  block.arrivals = 0;
  for (bool busy = true; busy;) {
    busy = false;
    for (block.thread = 0; block.thread < block.fibers.size(); block.thread++) {
      Fiber& fiber = block.fibers[block.thread];
      if (fiber.done) continue;
      swapcontext(&block.scheduler, &fiber.context);
      busy = true;
    }
  }
}

}  // namespace

void launch(uint32_t blocks, uint32_t threads, size_t sharedBytes, const std::function<void()>& kernel) {
  Block block;
  block.fibers.resize(threads);
  for (Fiber& fiber : block.fibers) fiber.stack = std::make_unique_for_overwrite<uint8_t[]>(kStackBytes);
  block.warps.resize(threads / kWarpLanes);
  block.memory.resize(sharedBytes / sizeof(uint4));
  block.kernel = &kernel;
  running = &block;
  for (block.block = 0; block.block < blocks; block.block++) runBlock(block);
  running = nullptr;
}

void waitForBlock() {
  Block& block = *running;
  const uint64_t needed = ++block.fibers[block.thread].blockWaits * block.fibers.size();
  block.arrivals++;
  while (block.arrivals < needed) yield();
}

const Operands* exchange(const Operands& own) {
  Block& block = *running;
  Warp& warp = block.warps[block.thread / kWarpLanes];
  const uint64_t wait = block.fibers[block.thread].warpWaits++;
  warp.operands[wait % 2][block.thread % kWarpLanes] = own;
  warp.arrivals++;
  while (warp.arrivals < (wait + 1) * kWarpLanes) yield();
  return warp.operands[wait % 2];
}

uint4* sharedMemory() { return running->memory.data(); }
Dimension threadIndex() { return {running->thread}; }
Dimension blockIndex() { return {running->block}; }

}  // namespace tributary::gpu::host
