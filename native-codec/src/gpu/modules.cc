/**
 * Holds modules.bin in the program. The file is the count of its entries, then for each entry its capability, 1 for
 * PTX or 0, the offset of the image and its bytes, all as 32-bit numbers with the lowest byte first, then the images.
 */
#include "gpu/modules.h"

#include <bit>
#include <cstring>

static_assert(std::endian::native == std::endian::little);

#ifdef __linux__
asm(R"(
  .pushsection .rodata
  .balign 16
  .local tributaryGpuModules
tributaryGpuModules:
  .incbin "src/gpu/modules.bin"
  .popsection
)");

extern "C" {
__attribute__((visibility("hidden"))) extern const uint8_t tributaryGpuModules[];
}
#else
/** CUDA has no other system that this package builds for, so there are no modules. */
static const uint8_t tributaryGpuModules[sizeof(uint32_t)] = {};
#endif

namespace tributary::gpu {
namespace {

struct Entry {
  uint32_t capability, isPtx, offset, bytes;
};

Entry entryAt(uint32_t index) {
  Entry entry = {};
  memcpy(&entry, tributaryGpuModules + sizeof(uint32_t) + index * sizeof entry, sizeof entry);
  return entry;
}

}  // namespace

Module moduleFor(uint32_t capability) {
  uint32_t count = 0;
  memcpy(&count, tributaryGpuModules, sizeof count);
  Module best = {0, true, nullptr, 0};
  for (uint32_t i = 0; i < count; i++) {
    const Entry entry = entryAt(i);
    const bool runs = entry.capability <= capability && (entry.isPtx != 0 || entry.capability / 10 == capability / 10);
    const bool isBetter = best.isPtx != (entry.isPtx != 0) ? best.isPtx : entry.capability > best.capability;
    if (runs && isBetter) {
      best = {entry.capability, entry.isPtx != 0, tributaryGpuModules + entry.offset, entry.bytes};
    }
  }
  return best;
}

}  // namespace tributary::gpu
