/** Sources that stay on the device, so that groups which are coded again and again are copied to it once. */
#ifndef TRIBUTARY_GPU_RESIDENTS_H_
#define TRIBUTARY_GPU_RESIDENTS_H_

#include <unordered_map>

#include "gpu/context.h"

namespace tributary::gpu {

/** The sources of one id. `loadedBy` and `usedBy` are numbers of batches. */
struct Resident {
  DeviceAddress memory;
  size_t bytes;
  /** 0: nothing was copied to it yet. */
  uint64_t loadedBy;
  uint64_t usedBy;
};

class Residents {
 public:
  /** They take at most `bytesMax` bytes. */
  Residents(const Context& context, size_t bytesMax) : context_(context), bytesMax_(bytesMax) {}
  /** The context must be attached, and no batch may run. The same holds for `clear`. */
  ~Residents() { clear(); }
  Residents(const Residents&) = delete;
  Residents& operator=(const Residents&) = delete;

  /**
   * The place for the sources of `id` in batch `batch`. Those that were not used for longest leave, if no batch after
   * `finished` uses them. Returns nullptr if there is no room. The place stays where it is until the next call.
   */
  Resident* hold(uint64_t id, size_t bytes, uint64_t batch, uint64_t finished);
  void clear();

 private:
  DeviceAddress memoryFor(size_t bytes, uint64_t finished);

  const Context& context_;
  size_t bytesMax_;
  size_t bytes_ = 0;
  std::unordered_map<uint64_t, Resident> all_;
};

}  // namespace tributary::gpu

#endif  // TRIBUTARY_GPU_RESIDENTS_H_
