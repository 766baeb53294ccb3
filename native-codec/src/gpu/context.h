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
  /** 0 for productTensor: TensorBlock. */
  uint32_t threads;
  /** The columns and the outputs of a block. 0 where a block has no tile. */
  uint32_t tileBytes;
  uint32_t outputs;
  /** Shared memory of a block. */
  uint32_t sharedBytes;
};

inline constexpr KernelShape kKernelShapes[kKernelCount] = {
    {"drawCoefficients", 128, 0, 0, 0},
    {"expandCoefficients", 128, 0, 0, 0},
    {"productTensor", 0, kTileBytes, 0, 0},
    {"productTables", 512, kWideTileBytes, kTableOutputs, kTableSharedBytes},
    {"productMasks", 128, kWideTileBytes, kMaskOutputs, kMaskSharedBytes},
};

constexpr const KernelShape& shapeOf(Kernel kernel) { return kKernelShapes[static_cast<size_t>(kernel)]; }

/**
 * A block of productTensor. A large one holds twice the sources and twice the outputs, but stages the sources while its
 * multiprocessor does nothing else.
 */
struct TensorBlock {
  uint32_t threads;
  /** How many sources it holds at once. */
  uint32_t segmentSources;

  uint32_t outputs() const { return threads / 32 * kWarpOutputs; }
  uint32_t sharedBytes() const { return segmentSources * kTensorSourceBytes; }
};
inline constexpr uint32_t kSmallBlockThreads = 256;
inline constexpr uint32_t kLargeBlockThreads = 512;

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
  /** The block of productTensor for jobs of at most `sourceCountMax` sources. */
  TensorBlock tensorBlock(uint32_t sourceCountMax) const;
  TensorBlock tensorBlockOf(uint32_t threads, uint32_t sourceCountMax) const;
  /** Starts a kernel. `jobs` is in device memory. Only productTensor has a `tensorBlock`. */
  Error launch(Kernel kernel, StreamHandle stream, uint32_t blocks, DeviceAddress jobs, uint32_t jobCount,
               const TensorBlock& tensorBlock) const;

 private:
  Context() = default;
  Error load(const char* library);
  Error loadKernels();

  Driver driver_;
  DeviceFacts facts_;
  int device_ = 0;
  /** How many sources a small and a large block hold. */
  uint32_t smallSegmentMax_ = 0;
  uint32_t largeSegmentMax_ = 0;
  ContextHandle context_ = nullptr;
  ModuleHandle module_ = nullptr;
  FunctionHandle functions_[kKernelCount] = {};
};

}  // namespace tributary::gpu

#endif  // TRIBUTARY_GPU_CONTEXT_H_
