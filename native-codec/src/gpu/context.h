/** One GPU with the kernels loaded: memory, copies, streams and launches, with typed errors. */
#ifndef TRIBUTARY_GPU_CONTEXT_H_
#define TRIBUTARY_GPU_CONTEXT_H_

#include <memory>
#include <string>

#include "gpu/driver.h"
#include "gpu/job.h"

namespace tributary::gpu {

enum class Failure : uint8_t {
  kNone,
  /** There is no driver on this machine. */
  kNoDriver,
  /** The driver is too old for the kernels, or has no code for this chip. */
  kOldDriver,
  /** The driver finds no GPU. */
  kNoDevice,
  /** The device or the host has too little memory. The context still works. */
  kOutOfMemory,
  /** The device failed. Every later call fails too. */
  kDeviceLost,
  /** The device computes something else than the CPU. */
  kWrongResult,
  /** An argument is wrong. The message names it. */
  kMisuse,
};

struct Error {
  Failure failure = Failure::kNone;
  std::string message;

  explicit operator bool() const { return failure != Failure::kNone; }
};

enum class Kernel : uint8_t {
  kDrawCoefficients,
  kExpandCoefficients,
  kProductTensor,
  kProductTables,
  kProductMasks,
};
inline constexpr size_t kKernelCount = 5;

struct KernelShape {
  const char* name;
  uint32_t threads;
  /** The columns and the outputs of a block. 0 where a block has no tile. */
  uint32_t tileBytes;
  uint32_t outputs;
  /** Shared memory of a block. For productTensor it depends on the segment. */
  uint32_t sharedBytes;
};

inline constexpr KernelShape kKernelShapes[kKernelCount] = {
    {"drawCoefficients", 128, 0, 0, 0},
    {"expandCoefficients", 128, 0, 0, 0},
    {"productTensor", 128, kTileBytes, kTensorOutputs, 0},
    {"productTables", 512, kWideTileBytes, kTableOutputs, kTableSharedBytes},
    {"productMasks", 128, kWideTileBytes, kMaskOutputs, kMaskSharedBytes},
};

constexpr const KernelShape& shapeOf(Kernel kernel) { return kKernelShapes[static_cast<size_t>(kernel)]; }

/** What a context tells about its device. */
struct DeviceFacts {
  std::string name;
  uint32_t capability = 0;
  uint32_t multiprocessors = 0;
  uint32_t clockKhz = 0;
  int driverVersion = 0;
};

/** Use a context on one thread at a time. `attach` makes it the calling thread's. */
class Context {
 public:
  /** Opens the first device by the driver library `library`. Returns nullptr, with the reason in `error`. */
  static std::unique_ptr<Context> open(Error& error, const char* library = "libcuda.so.1");
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const DeviceFacts& facts() const { return facts_; }
  const Driver& driver() const { return driver_; }
  Error attach() const;
  /** Translates a result of the driver. */
  Error errorOf(int result, const char* action) const;
  /** How many sources of `sourceCountMax` a block of productTensor holds at once. */
  uint32_t segmentSources(uint32_t sourceCountMax) const;
  /** Starts a kernel. `jobs` is in device memory. Only productTensor has `segmentSources`. */
  Error launch(Kernel kernel, StreamHandle stream, uint32_t blocks, DeviceAddress jobs, uint32_t jobCount,
               uint32_t segmentSources) const;

 private:
  Context() = default;
  Error load(const char* library);
  Error loadKernels();

  Driver driver_;
  DeviceFacts facts_;
  int device_ = 0;
  uint32_t segmentSourcesMax_ = 0;
  ContextHandle context_ = nullptr;
  ModuleHandle module_ = nullptr;
  FunctionHandle functions_[kKernelCount] = {};
};

}  // namespace tributary::gpu

#endif  // TRIBUTARY_GPU_CONTEXT_H_
