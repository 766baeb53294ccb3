/** Which sources are on the device. The least recently used ones leave first. */
#include "gpu/residents.h"

#include <algorithm>

namespace tributary::gpu {

Resident* Residents::hold(uint64_t id, size_t bytes, uint64_t batch, uint64_t finished) {
  auto found = all_.find(id);
  if (found != all_.end() && found->second.bytes != bytes) return nullptr;
  if (found == all_.end()) {
    const DeviceAddress memory = memoryFor(bytes, finished);
    if (memory == 0) return nullptr;
    found = all_.emplace(id, Resident{memory, bytes, 0, 0}).first;
    bytes_ += bytes;
  }
  found->second.usedBy = batch;
  return &found->second;
}

/** Returns 0 if there is no room. */
DeviceAddress Residents::memoryFor(size_t bytes, uint64_t finished) {
  const Driver& driver = context_.driver();
  while (bytes_ + bytes > bytesMax_) {
    const auto oldest = std::min_element(all_.begin(), all_.end(), [](const auto& one, const auto& other) {
      return one.second.usedBy < other.second.usedBy;
    });
    if (oldest == all_.end() || oldest->second.usedBy > finished) return 0;
    const Resident gone = oldest->second;
    all_.erase(oldest);
    bytes_ -= gone.bytes;
    if (gone.bytes == bytes) return gone.memory;
    driver.release(gone.memory);
  }
  DeviceAddress memory = 0;
  return driver.allocate(&memory, bytes) == kDriverOk ? memory : 0;
}

void Residents::clear() {
  for (const auto& [id, resident] : all_) context_.driver().release(resident.memory);
  all_.clear();
  bytes_ = 0;
}

}  // namespace tributary::gpu
