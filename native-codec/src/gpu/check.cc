/** What a device computes when it is opened, beside what the CPU computes. */
#include <cstring>

#include "engine.h"
#include "gpu/device.h"
#include "tributary/codec.h"

namespace tributary::gpu {

/**
 * Codes a small and a large group, which takes several tiles, warps and segments of sources: through the pinned buffer,
 * and to pinned memory with sources that stay on the device, twice.
 */
Error Device::check() {
  constexpr uint32_t outputCount = 9;
  constexpr size_t pinnedBytes = 4096;
  uint8_t* const pinned = allocate(pinnedBytes);
  if (pinned == nullptr) return {Failure::kOutOfMemory, "there is no pinned memory"};
  Error error;
  for (const auto& [sourceCount, symbolBytes] : {std::pair(11u, 30u), std::pair(220u, 200u)}) {
    std::vector<uint8_t> sources(sourceCount * symbolBytes + kRowPadding), outputs(outputCount * symbolBytes);
    std::vector<uint8_t> expected(outputs.size()), factors(sourceCount * outputCount);
    const uint32_t seeds[outputCount] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    coefficientsOf(1, sources);
    std::vector<const uint8_t*> from;
    std::vector<uint8_t*> to;
    for (uint32_t s = 0; s < sourceCount; s++) from.push_back(&sources[s * symbolBytes]);
    for (uint32_t o = 0; o < outputCount; o++) {
      to.push_back(&expected[o * symbolBytes]);
      coefficientsOf(seeds[o], Bytes(factors).subspan(o * sourceCount, sourceCount));
    }
    availableEngines().front()->multiply(
        {to.data(), outputCount, from.data(), sourceCount, factors.data(), sourceCount, symbolBytes, nullptr, false});
    const auto isRight = [&](uint8_t* out, uint64_t sourceId) {
      memset(out, 0xA5, expected.size());
      const Task task = {sources.data(), symbolBytes, sourceCount, symbolBytes, out,     symbolBytes,
                         outputCount,    seeds,       nullptr,     0,           sourceId};
      error = multiply({&task, 1}).error;
      if (error || memcmp(out, expected.data(), expected.size()) == 0) return !error;
      error = {Failure::kWrongResult, facts().name + " computes other symbols than the CPU (" +
                                          std::to_string(sourceCount) + " x " + std::to_string(symbolBytes) +
                                          " bytes)"};
      return false;
    };
    if (!isRight(outputs.data(), 0) || !isRight(pinned, sourceCount) || !isRight(pinned, sourceCount)) break;
  }
  release(pinned);
  residents_.clear();
  return error;
}

}  // namespace tributary::gpu
