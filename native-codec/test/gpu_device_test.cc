/**
 * Tests the GPU coder on a stand-in for the driver, which runs the kernels on the host: results, and each failure.
 *
 *     gpu_device_test DRIVER     the file of the stand-in
 */
#include <dlfcn.h>

#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "engine.h"
#include "gpu/device.h"
#include "gpu_driver_double.h"
#include "properties.h"

namespace {

using namespace tributary;
using namespace tributary::gpu;
using test::Block;
using test::expect;
using test::Random;

const char* driverFile = nullptr;
DoubleSettings* driverSettings = nullptr;

/** Opens a device with small batches, so that few tasks fill all slots. */
std::unique_ptr<Device> openDevice(Error& error) {
  return Device::open(error, {.library = driverFile, .batchBytes = 8 << 10});
}

/** Pinned memory that is taken from the start on, so that what is taken one after another is neighbours. */
struct Pinned {
  Pinned(Device& device, size_t bytes) : device(device), memory(device.allocate(bytes)), next(memory) {}
  ~Pinned() { device.release(memory); }
  Pinned(const Pinned&) = delete;
  uint8_t* take(size_t bytes) { return std::exchange(next, next + bytes); }
  Device& device;
  uint8_t* memory;
  uint8_t* next;
};

/** A task in pinned memory, padded or dense, or in memory of its own, with the coefficients of seeds, given or not. */
struct Work {
  Work(Random& random, Pinned& pinnedSources, Pinned& pinnedOutputs) {
    symbolCount = static_cast<uint32_t>(1 + random.below(30));
    outputCount = static_cast<uint32_t>(1 + random.below(20));
    symbolBytes = static_cast<uint32_t>(random.below(8) == 0 ? 1 : 1 + random.below(400));
    const bool isPinned = random.below(3) > 0;
    stride = isPinned && random.below(2) == 0 ? paddedBytes(symbolBytes) : symbolBytes + random.below(3);
    const size_t sourceBytes = stride * symbolCount, outputBytes = stride * outputCount;
    if (!isPinned) plain = std::make_unique<Block>(sourceBytes + outputBytes);
    sources = isPinned ? pinnedSources.take(sourceBytes) : plain->bytes.get();
    outputs = isPinned ? pinnedOutputs.take(outputBytes) : sources + sourceBytes;
    const Block content(random, sourceBytes);
    memcpy(sources, content.bytes.get(), sourceBytes);
    for (uint32_t o = 0; o < outputCount; o++) seeds.push_back(static_cast<uint32_t>(random.next()));
    coefficients.resize(symbolCount * outputCount);
    for (uint32_t o = 0; o < outputCount; o++) {
      coefficientsOf(seeds[o], Bytes(coefficients).subspan(o * symbolCount, symbolCount));
    }
    hasSeeds = random.below(2) == 0;
  }

  Task task() const {
    return {sources,
            stride,
            symbolCount,
            symbolBytes,
            outputs,
            stride,
            outputCount,
            hasSeeds ? seeds.data() : nullptr,
            hasSeeds ? nullptr : coefficients.data(),
            symbolCount};
  }
  bool isDone() const {
    std::vector<const uint8_t*> rows;
    for (uint32_t s = 0; s < symbolCount; s++) rows.push_back(sources + stride * s);
    Block expected(symbolBytes);
    uint8_t* out = expected.bytes.get();
    for (uint32_t o = 0; o < outputCount; o++) {
      findEngine("reference")
          ->multiply({&out, 1, rows.data(), symbolCount, &coefficients[o * symbolCount], symbolCount, symbolBytes,
                      nullptr, false});
      if (memcmp(out, outputs + stride * o, symbolBytes) != 0) return false;
    }
    return true;
  }

  uint32_t symbolCount, outputCount, symbolBytes;
  size_t stride;
  uint8_t* sources;
  uint8_t* outputs;
  std::unique_ptr<Block> plain;
  std::vector<uint32_t> seeds;
  std::vector<uint8_t> coefficients;
  bool hasSeeds;
};

struct Works {
  Works(uint64_t seed, Device& device, size_t count)
      : sources(device, count * 30 * 512), outputs(device, count * 20 * 512) {
    Random random(seed);
    while (all.size() < count) all.push_back(std::make_unique<Work>(random, sources, outputs));
    for (const auto& work : all) tasks.push_back(work->task());
  }
  bool areDone(size_t count) const {
    for (size_t i = 0; i < count; i++) {
      if (!all[i]->isDone()) return false;
    }
    return true;
  }
  Pinned sources, outputs;
  std::vector<std::unique_ptr<Work>> all;
  std::vector<Task> tasks;
};

/** Groups of several sizes in the caller's memory, whose sources stay on the device. */
struct Held {
  Held(Random& random, uint64_t id, uint32_t symbolBytes) : id(id), sources(random, kSources * symbolBytes) {
    task = {
        sources.bytes.get(), symbolBytes, kSources, symbolBytes, nullptr, symbolBytes, kOutputs, seeds, nullptr, 0, id};
  }
  Task into(uint8_t* outputs) const {
    Task own = task;
    own.outputs = outputs;
    return own;
  }
  bool isIn(const uint8_t* outputs) const {
    std::vector<uint8_t> factors(kSources);
    std::vector<const uint8_t*> rows;
    for (uint32_t s = 0; s < kSources; s++) rows.push_back(task.sources + task.sourceStride * s);
    Block expected(task.symbolBytes);
    uint8_t* out = expected.bytes.get();
    for (uint32_t o = 0; o < kOutputs; o++) {
      coefficientsOf(seeds[o], factors);
      findEngine("reference")
          ->multiply({&out, 1, rows.data(), kSources, factors.data(), kSources, task.symbolBytes, nullptr, false});
      if (memcmp(out, outputs + task.outputStride * o, task.symbolBytes) != 0) return false;
    }
    return true;
  }
  static constexpr uint32_t kSources = 9, kOutputs = 5;
  static constexpr uint32_t seeds[kOutputs] = {5, 6, 7, 8, 9};
  uint64_t id;
  Block sources;
  Task task;
};

void expectFailure(const Error& error, Failure failure, const char* what) {
  expect(error.failure == failure && !error.message.empty(), what);
}

void codes() {
  Error error;
  const auto device = openDevice(error);
  expect(device != nullptr, "the device opens");
  for (uint64_t seed = 1; seed <= 3; seed++) {
    const Works works(seed, *device, 24);
    const Outcome outcome = device->multiply(works.tasks);
    expect(!outcome.error && outcome.done == 24 && works.areDone(24), "all tasks are done");
  }
  expect(device->multiply({}).done == 0, "no task is no error");
}

/** The sources of a group go to the device once, as long as they have room there. */
void keepsSources() {
  constexpr size_t kGroups = 6, kTimes = 4;
  for (const bool hasRoom : {true, false}) {
    Error error;
    Random random(3);
    std::vector<std::unique_ptr<Held>> groups;
    for (size_t g = 0; g < kGroups; g++) groups.push_back(std::make_unique<Held>(random, g + 1, 100 + 200 * (g / 2)));
    constexpr size_t kRoom = 3 * 9 * 512;
    const auto device = Device::open(
        error, {.library = driverFile, .batchBytes = 8 << 10, .residentBytes = hasRoom ? size_t{1} << 20 : kRoom});
    const uint64_t before = driverSettings->uploadedBytes;
    size_t sourceBytes = 0;
    for (const auto& group : groups) sourceBytes += paddedBytes(group->task.symbolBytes) * Held::kSources;
    for (size_t time = 0; time < kTimes; time++) {
      std::vector<Task> tasks;
      std::vector<std::unique_ptr<Block>> outputs;
      for (size_t i = 0; i < 3 * kGroups; i++) {
        const Held& group = *groups[(i * 5 + time) % kGroups];
        outputs.push_back(std::make_unique<Block>(Held::kOutputs * group.task.symbolBytes));
        tasks.push_back(group.into(outputs.back()->bytes.get()));
      }
      expect(device->multiply(tasks).done == tasks.size(), "all tasks are done");
      for (size_t i = 0; i < tasks.size(); i++) {
        expect(groups[(i * 5 + time) % kGroups]->isIn(tasks[i].outputs), "tasks of sources that stay are right");
      }
    }
    const uint64_t uploaded = driverSettings->uploadedBytes - before;
    const size_t rest = kTimes * 3 * kGroups * 256;
    if (hasRoom) expect(uploaded >= sourceBytes && uploaded < sourceBytes + rest, "sources are copied once");
    if (!hasRoom) expect(uploaded > 2 * sourceBytes, "sources without room are copied again");
  }
}

/** After a failure, nothing on the device counts as there. */
void loadsAgainAfterAFailure() {
  Error error;
  const auto device = openDevice(error);
  Random random(4);
  const Held group(random, 1, 300);
  Block outputs(Held::kOutputs * 300);
  const Task task = group.into(outputs.bytes.get());
  driverSettings->bytesLeft = 2000;
  expectFailure(device->multiply({&task, 1}).error, Failure::kOutOfMemory, "out of memory with sources on the way");
  driverSettings->bytesLeft = -1;
  expect(device->multiply({&task, 1}).done == 1 && group.isIn(task.outputs), "the sources are loaded again");
}

void pinsMemoryOfTheCaller() {
  Error error;
  auto device = openDevice(error);
  Block memory(8192);
  driverSettings->pins = false;
  expectFailure(device->pin({memory.bytes.get(), 8192}), Failure::kOutOfMemory, "a system that pins nothing");
  driverSettings->pins = true;
  expect(!device->pin({memory.bytes.get(), 8192}) && driverSettings->pinnedCount == 1, "memory is pinned");
  Random random(5);
  const Held group(random, 0, 300);
  const Task task = group.into(memory.bytes.get() + 77);
  expect(device->multiply({&task, 1}).done == 1 && group.isIn(task.outputs), "outputs go to it directly");
  device.reset();
  expect(driverSettings->pinnedCount == 0, "it is released with the device");
}

void opensOnlyWhatWorks() {
  struct Case {
    DoubleSettings settings;
    Failure failure;
    const char* what;
  };
  const Case cases[] = {
      {{.initializeResult = kDriverNoDevice}, Failure::kNoDevice, "a driver without a GPU"},
      {{.deviceCount = 0}, Failure::kNoDevice, "no GPU among the devices"},
      {{.driverVersion = 11080}, Failure::kOldDriver, "an old driver"},
      {{.capability = 75}, Failure::kOldDriver, "an old chip"},
      {{.loadResult = kDriverNoBinary}, Failure::kOldDriver, "a driver that refuses the code"},
      {{.loadResult = kDriverOutOfMemory}, Failure::kOutOfMemory, "a full device"},
      {{.corrupts = true}, Failure::kWrongResult, "a device that computes wrongly"},
      {{.launchesLeft = 4}, Failure::kDeviceLost, "a device that is lost at once"},
      {{.bytesLeft = 4000}, Failure::kOutOfMemory, "a device with little memory"},
      {{.initializeResult = 999}, Failure::kDeviceLost, "a broken driver"},
  };
  for (const Case& one : cases) {
    *driverSettings = one.settings;
    Error error;
    expect(openDevice(error) == nullptr, one.what);
    expectFailure(error, one.failure, one.what);
  }
  Error error;
  expect(Device::open(error, {.library = "libcuda-of-nobody.so.1"}) == nullptr, "a missing driver");
  expectFailure(error, Failure::kNoDriver, "a missing driver");
  expect(Device::open(error, {.library = "libc.so.6"}) == nullptr, "a library that is no driver");
  expectFailure(error, Failure::kNoDriver, "a library that is no driver");
}

/** Whenever the device is lost, the tasks that count as done are right, and others are left. */
void losesTheDevice() {
  for (int64_t launches = 0; launches < 30; launches += 3) {
    *driverSettings = {};
    Error error;
    const auto device = openDevice(error);
    const Works works(7, *device, 24);
    driverSettings->launchesLeft = launches;
    const Outcome outcome = device->multiply(works.tasks);
    if (!outcome.error) expect(outcome.done == 24, "all tasks are done before the loss");
    if (outcome.error) {
      expectFailure(outcome.error, Failure::kDeviceLost, "the device is lost");
      expect(outcome.done < 24 && works.areDone(outcome.done), "tasks before the loss are right");
    }
    driverSettings->launchesLeft = 0;
    expectFailure(device->multiply(works.tasks).error, Failure::kDeviceLost, "the device stays lost");
  }
}

void runsOutOfMemory() {
  Error error;
  const auto device = openDevice(error);
  const Works works(8, *device, 12);
  driverSettings->bytesLeft = 1000;
  const Outcome outcome = device->multiply(works.tasks);
  expectFailure(outcome.error, Failure::kOutOfMemory, "out of device memory");
  expect(works.areDone(outcome.done), "tasks before the lack of memory are right");
  expect(device->allocate(5000) == nullptr, "out of pinned memory");
  driverSettings->bytesLeft = -1;
  expect(device->multiply(works.tasks).done == 12 && works.areDone(12), "the device works again");
}

void refusesMisuse() {
  Error error;
  const auto device = openDevice(error);
  const Works works(9, *device, 1);
  const auto refuses = [&](auto change, const char* what) {
    Task task = works.tasks[0];
    change(task);
    const Task tasks[] = {works.tasks[0], task};
    const Outcome outcome = device->multiply(tasks);
    expect(outcome.error.failure == Failure::kMisuse && outcome.error.message.starts_with(what) && outcome.done == 0,
           what);
  };
  refuses([](Task& task) { task.sourceCount = 0; }, "sourceCount is 0");
  refuses([](Task& task) { task.sourceCount = kTaskSymbolCountMax + 1; }, "sourceCount is 513");
  refuses([](Task& task) { task.symbolBytes = 0; }, "symbolBytes is 0");
  refuses([](Task& task) { task.symbolBytes = kTaskSymbolBytesMax + 1; }, "symbolBytes is 65537");
  refuses([](Task& task) { task.outputCount = 0; }, "outputCount is 0");
  refuses([](Task& task) { task.outputCount = kTaskOutputCountMax + 1; }, "outputCount is 513");
  expect(device->multiply(works.tasks).done == 1 && works.areDone(1), "the device works after misuse");
}

struct Case {
  const char* name;
  void (*check)();
};

const Case kCases[] = {
    {"device: codes like the reference engine, from pinned and from other memory", codes},
    {"device: keeps sources that have an id", keepsSources},
    {"device: loads sources again after a failure", loadsAgainAfterAFailure},
    {"device: pins memory of the caller", pinsMemoryOfTheCaller},
    {"device: says why it cannot be opened", opensOnlyWhatWorks},
    {"device: says which tasks are done when it is lost", losesTheDevice},
    {"device: survives a lack of memory", runsOutOfMemory},
    {"device: refuses misuse", refusesMisuse},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  driverFile = argv[1];
  void* library = dlopen(driverFile, RTLD_NOW);
  if (library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  driverSettings = reinterpret_cast<decltype(&doubleSettings)>(dlsym(library, "doubleSettings"))();
  int failed = 0;
  for (const Case& one : kCases) {
    *driverSettings = {};
    try {
      one.check();
    } catch (const test::Failure& failure) {
      fprintf(stderr, "FAILED %s: %s\n  replay: node native-codec/test.mjs gpu\n", one.name, failure.what.c_str());
      failed++;
    }
  }
  const int count = sizeof(kCases) / sizeof(kCases[0]);
  printf("%d passed, %d failed\n", count - failed, failed);
  return failed == 0 ? 0 : 1;
}
