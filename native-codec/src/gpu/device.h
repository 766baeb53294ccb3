/**
 * The GPU coder: products over GF(2^8) from host memory to host memory. It cuts tasks into batches. While one batch is
 * coded, the next one is copied to the device and the last one back.
 *
 * Memory that `allocate` returns or that `pin` got is pinned. The device writes outputs to it directly. It reads
 * sources from it directly, if their rows start every paddedBytes(symbolBytes) bytes. All other memory goes through a
 * pinned buffer, which costs a copy on the CPU. Sources with an id stay on the device, so they are copied once.
 */
#ifndef TRIBUTARY_GPU_DEVICE_H_
#define TRIBUTARY_GPU_DEVICE_H_

#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "gpu/context.h"
#include "gpu/residents.h"

namespace tributary::gpu {

/** Limits of a task. */
inline constexpr uint32_t kTaskSymbolCountMax = 512;
inline constexpr uint32_t kTaskSymbolBytesMax = 65536;
inline constexpr uint32_t kTaskOutputCountMax = 512;

/** The distance of rows that needs no copy on the CPU. */
constexpr size_t paddedBytes(size_t symbolBytes) { return (symbolBytes + kTileBytes - 1) / kTileBytes * kTileBytes; }

/**
 * outputs = coefficients x sources. It encodes with the coefficients of seeds, recodes with those of vectors, and
 * decodes with the inverse of the received vectors. All memory stays the caller's.
 */
struct Task {
  const uint8_t* sources;
  size_t sourceStride;
  uint32_t sourceCount;
  uint32_t symbolBytes;
  uint8_t* outputs;
  size_t outputStride;
  uint32_t outputCount;
  /** One seed for each output, or nullptr. */
  const uint32_t* seeds;
  /** If `seeds` is nullptr: sourceCount bytes for each output, in rows that start every `coefficientStride` bytes. */
  const uint8_t* coefficients;
  size_t coefficientStride;
  /** Tasks with the same id have the same sources. 0: the sources have no id. */
  uint64_t sourceId = 0;
};

/** The first `done` tasks are done. If `error` is set, the outputs of all others are undefined. */
struct Outcome {
  size_t done = 0;
  Error error;
};

/** How to open a device. */
struct DeviceOptions {
  const char* library = "libcuda.so.1";
  /** A batch ends when its sources or its outputs have this many bytes. */
  size_t batchBytes = size_t{8} << 20;
  /** Sources with an id may take this much memory of the device. Those that were not used for longest leave. */
  size_t residentBytes = size_t{1} << 30;
};

struct Placed;

class Device {
 public:
  /**
   * Returns nullptr, with the reason in `error`, if this machine has no usable GPU. It codes two groups and compares
   * them with the CPU's result, so a device that computes wrongly is not usable.
   */
  static std::unique_ptr<Device> open(Error& error, const DeviceOptions& options = {});
  ~Device();

  const DeviceFacts& facts() const { return context_->facts(); }
  const Context& context() const { return *context_; }
  /** Codes all tasks and returns. One thread at a time may call it. */
  Outcome multiply(std::span<const Task> tasks);
  /** Returns pinned memory, or nullptr. Any thread may call this and `release`. */
  uint8_t* allocate(size_t bytes);
  void release(uint8_t* memory);
  /** Pins memory of the caller until the device closes. Any thread may call it. The memory must stay until then. */
  Error pin(std::span<uint8_t> memory);

 private:
  struct Slot;
  struct Batch;
  struct Pinned {
    size_t bytes;
    bool isOwn;
  };

  Device(std::unique_ptr<Context> context, const DeviceOptions& options);
  Error check();
  Error start(Slot& slot, std::span<const Task> tasks);
  Error finish(Slot& slot);
  Error reserve(Slot& slot, const Batch& batch);
  Error upload(Slot& slot, const Batch& batch);
  Error download(Slot& slot, const Batch& batch);
  Error hold(const Slot& slot, Placed& placed);
  size_t batchEnd(std::span<const Task> tasks, size_t first) const;
  /** The pinned block that has these bytes, or nullptr. */
  const uint8_t* pinnedBlock(const uint8_t* memory, size_t bytes) const;

  std::unique_ptr<Context> context_;
  size_t batchBytes_;
  std::vector<std::unique_ptr<Slot>> slots_;
  /** Batches that were started and that are over, from 1 on. A batch has slot number % slots. */
  uint64_t started_ = 0;
  uint64_t finished_ = 0;
  Residents residents_;
  mutable std::mutex mutex_;
  /** The pinned blocks by their first byte. */
  std::map<const uint8_t*, Pinned> pinned_;
};

}  // namespace tributary::gpu

#endif  // TRIBUTARY_GPU_DEVICE_H_
