/** Batches, slots and copies of the GPU coder. */
#include "gpu/device.h"

#include <algorithm>
#include <cstring>
#include <deque>

namespace tributary::gpu {
namespace {

constexpr size_t kSlotCount = 4;
/** Rows of neighbours in host memory stay neighbours on the device, because this divides the bytes of all rows. */
constexpr size_t kAlign = kTileBytes;

constexpr size_t aligned(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

Error misuse(const char* what, size_t got, size_t limit) {
  return {Failure::kMisuse,
          std::string(what) + " is " + std::to_string(got) + ", and must be 1 to " + std::to_string(limit)};
}

Error checkTask(const Task& task) {
  const auto outside = [](uint32_t value, uint32_t limit) { return value == 0 || value > limit; };
  if (outside(task.sourceCount, kTaskSymbolCountMax))
    return misuse("sourceCount", task.sourceCount, kTaskSymbolCountMax);
  if (outside(task.symbolBytes, kTaskSymbolBytesMax))
    return misuse("symbolBytes", task.symbolBytes, kTaskSymbolBytesMax);
  if (outside(task.outputCount, kTaskOutputCountMax))
    return misuse("outputCount", task.outputCount, kTaskOutputCountMax);
  return {};
}

/** Copies `count` rows of `bytes` bytes. */
void copyRows(uint8_t* to, size_t toStride, const uint8_t* from, size_t fromStride, size_t bytes, size_t count) {
  if (toStride == bytes && fromStride == bytes) {
    memcpy(to, from, bytes * count);
    return;
  }
  for (size_t row = 0; row < count; row++) memcpy(to + row * toStride, from + row * fromStride, bytes);
}

}  // namespace

/** One task of a batch, with the places of its parts in the slot's device memory. */
struct Placed {
  const Task* task;
  /** The pinned blocks that the device reads and writes directly, or nullptr. */
  const uint8_t* sourceBlock = nullptr;
  const uint8_t* outputBlock = nullptr;
  size_t seeds = 0;
  size_t coefficients = 0;
  size_t sources = 0;
  size_t words = 0;
  size_t outputs = 0;
  /** Where the sources are if they stay on the device, else 0. */
  DeviceAddress resident = 0;
  /** This batch copies them there. */
  bool loads = false;
  /** The place of its sources in the pinned buffer, if it loads them. */
  size_t staged = 0;

  size_t stride() const { return paddedBytes(task->symbolBytes); }
  size_t coefficientStride() const { return ceilDivide(task->sourceCount, kCoefficientAlign) * kCoefficientAlign; }
  size_t sourceBytes() const { return stride() * task->sourceCount; }
  size_t outputBytes() const { return stride() * task->outputCount; }
  /** The bytes of the caller's outputs. */
  size_t ownOutputBytes() const {
    if (task->outputStride == stride()) return outputBytes();
    return task->outputStride * (task->outputCount - 1) + task->symbolBytes;
  }
  bool stagesSources() const { return sourceBlock == nullptr && (resident == 0 || loads); }
};

/** Bytes of host memory, the pinned block that has them, and their place in the slot's device memory. */
struct Part {
  const uint8_t* block;
  uint8_t* memory;
  size_t place;
  size_t bytes;
};

/**
 * The device memory of a batch: what is uploaded from the pinned buffer, what is not, what is downloaded to the pinned
 * buffer, what is not. The pinned buffer has the first and the third part, and then the sources that are to stay on the
 * device.
 */
struct Device::Batch {
  std::vector<Placed> tasks;
  size_t uploadBytes = 0;
  size_t downloadAt = 0;
  size_t downloadBytes = 0;
  size_t totalBytes = 0;
  size_t pinnedBytes = 0;

  void place();
};

void Device::Batch::place() {
  size_t next = 0;
  const auto take = [&next](size_t bytes) {
    const size_t place = next;
    next += aligned(bytes);
    return place;
  };
  take(tasks.size() * sizeof(Job));
  for (Placed& placed : tasks) {
    const Task& task = *placed.task;
    if (task.seeds != nullptr) placed.seeds = take(task.outputCount * sizeof(uint32_t));
    if (task.seeds == nullptr) placed.coefficients = take(task.outputCount * placed.coefficientStride());
    if (placed.sourceBlock == nullptr && placed.resident == 0) placed.sources = take(placed.sourceBytes());
  }
  uploadBytes = next;
  for (Placed& placed : tasks) {
    if (placed.sourceBlock != nullptr) placed.sources = take(placed.sourceBytes());
  }
  for (Placed& placed : tasks) {
    const Task& task = *placed.task;
    if (task.seeds != nullptr) placed.coefficients = take(task.outputCount * placed.coefficientStride());
    placed.words = take(wordBytes(task.sourceCount, task.outputCount));
  }
  downloadAt = next;
  for (Placed& placed : tasks) {
    if (placed.outputBlock == nullptr) placed.outputs = take(placed.outputBytes());
  }
  downloadBytes = next - downloadAt;
  for (Placed& placed : tasks) {
    if (placed.outputBlock != nullptr) placed.outputs = take(placed.outputBytes());
  }
  totalBytes = next;
  pinnedBytes = uploadBytes + downloadBytes;
  for (Placed& placed : tasks) {
    if (!placed.loads) continue;
    placed.staged = pinnedBytes;
    pinnedBytes += placed.sourceBytes();
  }
}

struct Device::Slot {
  StreamHandle stream = nullptr;
  /** The sources that the batch loads are on the device. */
  EventHandle loaded = nullptr;
  DeviceAddress memory = 0;
  size_t memoryBytes = 0;
  void* pinned = nullptr;
  size_t pinnedBytes = 0;
  Batch batch;
  /** The number of the batch. */
  uint64_t number = 0;
  bool isBusy = false;

  uint8_t* uploads() const { return static_cast<uint8_t*>(pinned); }
};

Device::Device(std::unique_ptr<Context> context, const DeviceOptions& options)
    : context_(std::move(context)), batchBytes_(options.batchBytes), residents_(*context_, options.residentBytes) {}

std::unique_ptr<Device> Device::open(Error& error, const DeviceOptions& options) {
  std::unique_ptr<Context> context = Context::open(error, options.library);
  if (context == nullptr) return nullptr;
  std::unique_ptr<Device> device(new Device(std::move(context), options));
  for (size_t i = 0; i < kSlotCount; i++) {
    Slot& slot = *device->slots_.emplace_back(std::make_unique<Slot>());
    const Driver& driver = device->context_->driver();
    error = device->context_->errorOf(driver.createStream(&slot.stream, kNonBlocking), "cuStreamCreate");
    if (!error) error = device->context_->errorOf(driver.createEvent(&slot.loaded, kWithoutTiming), "cuEventCreate");
    if (error) return nullptr;
  }
  error = device->check();
  return error ? nullptr : std::move(device);
}

Device::~Device() {
  const Driver& driver = context_->driver();
  driver.setContext(nullptr);
  (void)context_->attach();
  for (const auto& slot : slots_) {
    if (slot->stream != nullptr) {
      driver.waitForStream(slot->stream);
      driver.destroyStream(slot->stream);
    }
    if (slot->loaded != nullptr) driver.destroyEvent(slot->loaded);
    if (slot->memory != 0) driver.release(slot->memory);
    if (slot->pinned != nullptr) driver.releasePinned(slot->pinned);
  }
  for (const auto& [memory, pinned] : pinned_) {
    (pinned.isOwn ? driver.releasePinned : driver.unpin)(const_cast<uint8_t*>(memory));
  }
}

uint8_t* Device::allocate(size_t bytes) {
  void* memory = nullptr;
  if (context_->attach() || context_->driver().allocatePinned(&memory, bytes, kPortable) != kDriverOk) return nullptr;
  const std::lock_guard lock(mutex_);
  pinned_[static_cast<uint8_t*>(memory)] = {bytes, true};
  return static_cast<uint8_t*>(memory);
}

Error Device::pin(std::span<uint8_t> memory) {
  if (Error error = context_->attach()) return error;
  const int result = context_->driver().pin(memory.data(), memory.size(), kPortable);
  if (Error error = context_->errorOf(result, "pinning")) return error;
  const std::lock_guard lock(mutex_);
  pinned_[memory.data()] = {memory.size(), false};
  return {};
}

void Device::release(uint8_t* memory) {
  const std::lock_guard lock(mutex_);
  if (pinned_.erase(memory) == 0 || context_->attach()) return;
  context_->driver().releasePinned(memory);
}

const uint8_t* Device::pinnedBlock(const uint8_t* memory, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  auto block = pinned_.upper_bound(memory);
  if (block == pinned_.begin()) return nullptr;
  --block;
  return memory + bytes <= block->first + block->second.bytes ? block->first : nullptr;
}

/** Makes the slot's memory large enough. */
Error Device::reserve(Slot& slot, const Batch& batch) {
  const Driver& driver = context_->driver();
  if (slot.memoryBytes < batch.totalBytes) {
    if (slot.memory != 0) driver.release(slot.memory);
    slot.memory = 0;
    slot.memoryBytes = 0;
    if (Error error = context_->errorOf(driver.allocate(&slot.memory, batch.totalBytes), "device memory")) return error;
    slot.memoryBytes = batch.totalBytes;
  }
  if (slot.pinnedBytes < batch.pinnedBytes) {
    if (slot.pinned != nullptr) driver.releasePinned(slot.pinned);
    slot.pinned = nullptr;
    slot.pinnedBytes = 0;
    if (Error error = context_->errorOf(driver.allocatePinned(&slot.pinned, batch.pinnedBytes, 0), "pinned memory")) {
      return error;
    }
    slot.pinnedBytes = batch.pinnedBytes;
  }
  return {};
}

/** Calls `copy` for each run of parts that are neighbours in a pinned block and in device memory. */
template <typename PartOf, typename Copy>
Error forEachRun(const std::vector<Placed>& tasks, PartOf partOf, Copy copy) {
  Part run = {};
  for (const Placed& placed : tasks) {
    const Part part = partOf(placed);
    if (part.block == nullptr) continue;
    if (part.block == run.block && part.memory == run.memory + run.bytes && part.place == run.place + run.bytes) {
      run.bytes += part.bytes;
      continue;
    }
    if (run.bytes != 0) {
      if (Error error = copy(run)) return error;
    }
    run = part;
  }
  return run.bytes != 0 ? copy(run) : Error{};
}

/** Fills the pinned buffer and starts the copies to the device. */
Error Device::upload(Slot& slot, const Batch& batch) {
  const Driver& driver = context_->driver();
  const auto copy = [&](const Part& part) {
    return context_->errorOf(driver.copyToDevice(slot.memory + part.place, part.memory, part.bytes, slot.stream),
                             "copy to the device");
  };
  const auto partOf = [](const Placed& placed) {
    return Part{placed.sourceBlock, const_cast<uint8_t*>(placed.task->sources), placed.sources, placed.sourceBytes()};
  };
  if (Error error = forEachRun(batch.tasks, partOf, copy)) return error;
  for (const Placed& placed : batch.tasks) {
    const Task& task = *placed.task;
    if (task.seeds != nullptr) {
      memcpy(slot.uploads() + placed.seeds, task.seeds, task.outputCount * sizeof(uint32_t));
    } else {
      uint8_t* to = slot.uploads() + placed.coefficients;
      memset(to, 0, task.outputCount * placed.coefficientStride());
      copyRows(to, placed.coefficientStride(), task.coefficients, task.coefficientStride, task.sourceCount,
               task.outputCount);
    }
    if (!placed.stagesSources()) continue;
    uint8_t* to = slot.uploads() + (placed.loads ? placed.staged : placed.sources);
    copyRows(to, placed.stride(), task.sources, task.sourceStride, task.symbolBytes, task.sourceCount);
    if (!placed.loads) continue;
    const int result = driver.copyToDevice(placed.resident, to, placed.sourceBytes(), slot.stream);
    if (Error error = context_->errorOf(result, "copy to the device")) return error;
  }
  if (Error error = context_->errorOf(driver.recordEvent(slot.loaded, slot.stream), "cuEventRecord")) return error;
  return copy({nullptr, slot.uploads(), 0, batch.uploadBytes});
}

Error Device::download(Slot& slot, const Batch& batch) {
  const auto copy = [&](const Part& part) {
    return context_->errorOf(
        context_->driver().copyToHost(part.memory, slot.memory + part.place, part.bytes, slot.stream),
        "copy to the host");
  };
  const auto partOf = [](const Placed& placed) {
    const bool isPadded = placed.task->outputStride == placed.stride();
    return Part{isPadded ? placed.outputBlock : nullptr, placed.task->outputs, placed.outputs, placed.outputBytes()};
  };
  if (Error error = forEachRun(batch.tasks, partOf, copy)) return error;
  for (const Placed& placed : batch.tasks) {
    const Task& task = *placed.task;
    if (placed.outputBlock == nullptr || task.outputStride == placed.stride()) continue;
    CopyOfRows rows;
    rows.fromKind = MemoryKind::kDevice;
    rows.fromDevice = slot.memory + placed.outputs;
    rows.fromStride = placed.stride();
    rows.toKind = MemoryKind::kHost;
    rows.toHost = task.outputs;
    rows.toStride = task.outputStride;
    rows.rowBytes = task.symbolBytes;
    rows.rowCount = task.outputCount;
    const int result = context_->driver().copyRows(&rows, slot.stream);
    if (Error error = context_->errorOf(result, "copy to the host")) return error;
  }
  if (batch.downloadBytes == 0) return {};
  return copy({nullptr, slot.uploads() + batch.uploadBytes, batch.downloadAt, batch.downloadBytes});
}

/** Finds or makes the place where the task's sources stay, and makes the batch wait for them if they are on their way.
 */
Error Device::hold(const Slot& slot, Placed& placed) {
  if (placed.sourceBlock != nullptr || placed.task->sourceId == 0) return {};
  Resident* resident = residents_.hold(placed.task->sourceId, placed.sourceBytes(), slot.number, finished_);
  if (resident == nullptr) return {};
  placed.resident = resident->memory;
  placed.loads = resident->loadedBy == 0;
  if (placed.loads) resident->loadedBy = slot.number;
  if (resident->loadedBy == slot.number || resident->loadedBy <= finished_) return {};
  const Slot& loader = *slots_[resident->loadedBy % kSlotCount];
  return context_->errorOf(context_->driver().waitForEvent(slot.stream, loader.loaded, 0), "cuStreamWaitEvent");
}

Error Device::start(Slot& slot, std::span<const Task> tasks) {
  slot.number = started_;
  Batch& batch = slot.batch;
  batch.tasks.clear();
  uint32_t tiles = 0, sourceCountMax = 0;
  for (const Task& task : tasks) {
    const size_t stride = paddedBytes(task.symbolBytes);
    Placed& placed = batch.tasks.emplace_back(Placed{&task});
    if (task.sourceStride == stride) placed.sourceBlock = pinnedBlock(task.sources, placed.sourceBytes());
    placed.outputBlock = pinnedBlock(task.outputs, placed.ownOutputBytes());
    if (Error error = hold(slot, placed)) return error;
    tiles += static_cast<uint32_t>(stride / kTileBytes);
    sourceCountMax = std::max(sourceCountMax, task.sourceCount);
  }
  batch.place();
  if (Error error = reserve(slot, batch)) return error;
  // Enough blocks for two on each multiprocessor, twice over. More would stage the sources more often.
  const uint32_t parts = ceilDivide(4 * facts().multiprocessors, tiles);
  Job next = {};
  bool draws = false;
  for (size_t i = 0; i < batch.tasks.size(); i++) {
    const Placed& placed = batch.tasks[i];
    const Task& task = *placed.task;
    const auto stride = static_cast<uint32_t>(placed.stride());
    const Job job = {placed.resident != 0 ? placed.resident : slot.memory + placed.sources,
                     slot.memory + placed.outputs,
                     slot.memory + placed.coefficients,
                     task.seeds != nullptr ? slot.memory + placed.seeds : 0,
                     slot.memory + placed.words,
                     task.sourceCount,
                     task.outputCount,
                     stride,
                     static_cast<uint32_t>(placed.coefficientStride()),
                     next.firstBlockOfDraw,
                     next.firstBlockOfExpand,
                     next.firstBlockOfProduct,
                     std::min(parts, ceilDivide(task.outputCount, kTensorOutputs))};
    memcpy(slot.uploads() + i * sizeof job, &job, sizeof job);
    draws |= task.seeds != nullptr;
    next.firstBlockOfDraw += blocksOfDraw(task.sourceCount, task.outputCount);
    next.firstBlockOfExpand += blocksOfExpand(task.sourceCount, task.outputCount);
    next.firstBlockOfProduct += stride / kTileBytes * job.parts;
  }
  slot.isBusy = true;
  if (Error error = upload(slot, batch)) return error;
  const auto jobCount = static_cast<uint32_t>(batch.tasks.size());
  const uint32_t segment = context_->segmentSources(sourceCountMax);
  const auto launch = [&](Kernel kernel, uint32_t blocks) {
    return context_->launch(kernel, slot.stream, blocks, slot.memory, jobCount, segment);
  };
  if (draws) {
    if (Error error = launch(Kernel::kDrawCoefficients, next.firstBlockOfDraw)) return error;
  }
  if (Error error = launch(Kernel::kExpandCoefficients, next.firstBlockOfExpand)) return error;
  if (Error error = launch(Kernel::kProductTensor, next.firstBlockOfProduct)) return error;
  return download(slot, batch);
}

/** Waits for a slot's batch and copies its outputs out of the pinned buffer. */
Error Device::finish(Slot& slot) {
  if (!slot.isBusy) return {};
  slot.isBusy = false;
  const Batch& batch = slot.batch;
  if (Error error = context_->errorOf(context_->driver().waitForStream(slot.stream), "coding")) return error;
  for (const Placed& placed : batch.tasks) {
    if (placed.outputBlock != nullptr) continue;
    copyRows(placed.task->outputs, placed.task->outputStride,
             slot.uploads() + batch.uploadBytes + placed.outputs - batch.downloadAt, placed.stride(),
             placed.task->symbolBytes, placed.task->outputCount);
  }
  return {};
}

/** Where the batch that starts at task `first` ends. */
size_t Device::batchEnd(std::span<const Task> tasks, size_t first) const {
  size_t end = first;
  for (size_t sourceBytes = 0, outputBytes = 0; end < tasks.size() && std::max(sourceBytes, outputBytes) < batchBytes_;
       end++) {
    sourceBytes += paddedBytes(tasks[end].symbolBytes) * tasks[end].sourceCount;
    outputBytes += paddedBytes(tasks[end].symbolBytes) * tasks[end].outputCount;
  }
  return end;
}

Outcome Device::multiply(std::span<const Task> tasks) {
  Outcome outcome;
  for (const Task& task : tasks) {
    if ((outcome.error = checkTask(task))) return outcome;
  }
  if ((outcome.error = context_->attach())) return outcome;
  std::deque<size_t> ends;
  const auto finishNext = [&] {
    const Error error = finish(*slots_[++finished_ % kSlotCount]);
    if (!error) outcome.done = ends.front();
    ends.pop_front();
    return error;
  };
  for (size_t first = 0; first < tasks.size() && !outcome.error;) {
    if (ends.size() == kSlotCount && (outcome.error = finishNext())) break;
    const size_t end = batchEnd(tasks, first);
    outcome.error = start(*slots_[++started_ % kSlotCount], tasks.subspan(first, end - first));
    if (outcome.error) break;
    ends.push_back(end);
    first = end;
  }
  // The batches in flight may still succeed after a lack of memory.
  while (!ends.empty()) {
    const Error error = finishNext();
    if (!error) continue;
    if (!outcome.error) outcome.error = error;
    break;
  }
  // After a failure no copy may still run, because the caller owns the memory again.
  for (const auto& slot : slots_) {
    if (slot->isBusy) context_->driver().waitForStream(slot->stream);
    slot->isBusy = false;
  }
  finished_ = started_;
  if (outcome.error) residents_.clear();
  return outcome;
}

}  // namespace tributary::gpu
