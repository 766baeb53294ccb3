/** The kernels' machine code, which native-codec/gpu.mjs builds into modules.bin. */
#ifndef TRIBUTARY_GPU_MODULES_H_
#define TRIBUTARY_GPU_MODULES_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace tributary::gpu {

/** Machine code for one kind of chip, or PTX, which a driver compiles for newer chips. */
struct Module {
  /** The compute capability, for example 90 for 9.0. */
  uint32_t capability;
  bool isPtx;
  const uint8_t* image;
  size_t bytes;
};

/**
 * Returns the module that a chip of `capability` runs: machine code of the same major and at most the same minor
 * number, else PTX of at most its capability. If there is none, the image of the result is nullptr.
 */
Module moduleFor(uint32_t capability);

}  // namespace tributary::gpu

#endif  // TRIBUTARY_GPU_MODULES_H_
