/** Measures coders from host memory to host memory: the GPU, all CPU cores, and both on one queue. */
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ctime>
#include <memory>
#include <thread>

#include "parts.h"
#include "tributary/detail.h"

namespace tributary::bench {

void fillRandom(uint8_t* bytes, size_t count, uint64_t seed) {
  uint64_t state = seed * 0x9E3779B97F4A7C15 + 1;
  for (size_t i = 0; i < count; i += 8) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    memcpy(bytes + i, &state, std::min<size_t>(8, count - i));
  }
}

bool isCoded(const uint8_t* sources, size_t stride, Shape shape, uint32_t seed, const uint8_t* got) {
  std::vector<const uint8_t*> rows;
  for (uint32_t s = 0; s < shape.symbolCount; s++) rows.push_back(sources + stride * s);
  std::vector<uint8_t> factors(shape.symbolCount), expected(shape.symbolBytes);
  coefficientsOf(seed, factors);
  uint8_t* out = expected.data();
  findEngine("reference")
      ->multiply(
          {&out, 1, rows.data(), rows.size(), factors.data(), factors.size(), shape.symbolBytes, nullptr, false});
  return memcmp(out, got, shape.symbolBytes) == 0;
}

namespace {

using gpu::Task;

/** Host memory that is pinned if a device is there. */
class HostMemory {
 public:
  HostMemory(gpu::Device* device, size_t bytes) : device_(device) {
    memory_ = device == nullptr ? static_cast<uint8_t*>(aligned_alloc(4096, (bytes + 4095) / 4096 * 4096))
                                : device->allocate(bytes);
    if (memory_ == nullptr) must({gpu::Failure::kOutOfMemory, "host memory"});
  }
  ~HostMemory() {
    if (device_ == nullptr) free(memory_);
    if (device_ != nullptr) device_->release(memory_);
  }
  uint8_t* at(size_t offset) const { return memory_ + offset; }

 private:
  gpu::Device* device_;
  uint8_t* memory_;
};

/** Groups of one shape with as many outputs as sources, in padded rows. Dense outputs follow one another. */
class Groups {
 public:
  Groups(gpu::Device* device, size_t bytes, Shape shape, bool isDense = false)
      : shape(shape),
        stride(gpu::paddedBytes(shape.symbolBytes)),
        outputStride(isDense ? shape.symbolBytes : stride),
        count(std::max<size_t>(1, bytes / (stride * shape.symbolCount))),
        sources(device, count * groupBytes()),
        outputs(device, count * groupBytes()),
        vectors(device, count * vectorBytes() * 2),
        seeds(shape.symbolCount * count),
        coefficients(size_t{shape.symbolCount} * shape.symbolCount * count) {
    fillRandom(sources.at(0), count * groupBytes(), 3);
    memset(outputs.at(0), 0, count * groupBytes());
    fillRandom(vectors.at(0), count * vectorBytes(), 4);
    for (size_t i = 0; i < seeds.size(); i++) {
      seeds[i] = static_cast<uint32_t>(i * 2654435761u + 99);
      coefficientsOf(seeds[i], Bytes(coefficients).subspan(i * shape.symbolCount, shape.symbolCount));
    }
  }

  size_t groupBytes() const { return stride * shape.symbolCount; }
  size_t vectorBytes() const { return gpu::paddedBytes(shape.symbolCount) * shape.symbolCount; }
  size_t codedBytes() const { return size_t{shape.symbolBytes} * shape.symbolCount * count; }

  Task task(size_t group) const {
    const uint32_t n = shape.symbolCount;
    return {sources.at(groupBytes() * group),
            stride,
            n,
            shape.symbolBytes,
            outputs.at(groupBytes() * group),
            outputStride,
            n,
            &seeds[group * n],
            nullptr,
            0};
  }
  /** The sources stay on the device. */
  Task heldTask(size_t group) const {
    Task held = task(group);
    held.sourceId = (uint64_t{shape.symbolBytes} << 32) + group + 1;
    return held;
  }
  Task vectorTask(size_t group) const {
    const uint32_t n = shape.symbolCount;
    const size_t vectorStride = gpu::paddedBytes(n);
    return {vectors.at(vectorBytes() * group),
            vectorStride,
            n,
            n,
            vectors.at(vectorBytes() * (count + group)),
            vectorStride,
            n,
            &seeds[group * n],
            nullptr,
            0};
  }
  Task decodeTask(size_t group) const {
    Task decode = task(group);
    decode.seeds = nullptr;
    decode.coefficients = &coefficients[group * shape.symbolCount * shape.symbolCount];
    decode.coefficientStride = shape.symbolCount;
    return decode;
  }
  bool isRight() const {
    for (const size_t group : {size_t{0}, count / 2, count - 1}) {
      for (uint32_t o = group % 3; o < shape.symbolCount; o += stepOfRows(shape)) {
        const uint8_t* got = outputs.at(groupBytes() * group + outputStride * o);
        if (!isCoded(sources.at(groupBytes() * group), stride, shape, seeds[group * shape.symbolCount + o], got))
          return false;
      }
    }
    return true;
  }
  void multiplyOnCpu(const Engine& engine, size_t group) const {
    std::vector<const uint8_t*> from(shape.symbolCount);
    std::vector<uint8_t*> to(shape.symbolCount);
    for (uint32_t i = 0; i < shape.symbolCount; i++) {
      from[i] = sources.at(groupBytes() * group + stride * i);
      to[i] = outputs.at(groupBytes() * group + outputStride * i);
    }
    engine.multiply({to.data(), to.size(), from.data(), from.size(),
                     &coefficients[group * shape.symbolCount * shape.symbolCount], shape.symbolCount, shape.symbolBytes,
                     nullptr, false});
  }

  Shape shape;
  size_t stride;
  size_t outputStride;
  size_t count;
  HostMemory sources, outputs, vectors;
  std::vector<uint32_t> seeds;
  std::vector<uint8_t> coefficients;
};

void mustBeRight(const Groups& groups, const char* coder) {
  if (groups.isRight()) return;
  must({gpu::Failure::kMisuse, std::string(coder) + " differs from the reference engine"});
}

/** Processor time of this thread. */
double threadSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/** The best rate of some passes over all tasks. */
double deviceRate(gpu::Device& device, const std::vector<Task>& tasks, size_t codedBytes, int repeats) {
  double best = 1e9;
  for (int i = -1; i < repeats; i++) {
    const auto start = std::chrono::steady_clock::now();
    must(device.multiply(tasks).error);
    if (i >= 0) best = std::min(best, secondsSince(start));
  }
  return static_cast<double>(codedBytes) / best / 1e9;
}

template <typename MakeTask>
std::vector<Task> tasksOf(const Groups& groups, MakeTask makeTask) {
  std::vector<Task> tasks;
  for (size_t g = 0; g < groups.count; g++) tasks.push_back(makeTask(g));
  return tasks;
}

/** Runs both coders, or one of them, over the groups again and again for some seconds. Returns GB/s of output. */
double sharedRate(gpu::Device* device, const Groups& groups, unsigned threads, double seconds) {
  const Engine& engine = *availableEngines().front();
  const size_t gpuTasks = std::max<size_t>(1, std::min(groups.count, (size_t{64} << 20) / groups.groupBytes()));
  std::atomic<size_t> next = 0, done = 0;
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> coders;
  for (unsigned t = 0; t < threads; t++) {
    coders.emplace_back([&] {
      while (secondsSince(start) < seconds) {
        groups.multiplyOnCpu(engine, next.fetch_add(1) % groups.count);
        done.fetch_add(1);
      }
    });
  }
  if (device != nullptr) {
    coders.emplace_back([&] {
      std::vector<Task> tasks(gpuTasks);
      while (secondsSince(start) < seconds) {
        const size_t first = next.fetch_add(gpuTasks);
        for (size_t i = 0; i < gpuTasks; i++) tasks[i] = groups.task((first + i) % groups.count);
        must(device->multiply(tasks).error);
        done.fetch_add(gpuTasks);
      }
    });
  }
  for (std::thread& coder : coders) coder.join();
  const double codedBytes = static_cast<double>(done) * groups.shape.symbolBytes * groups.shape.symbolCount;
  return codedBytes / secondsSince(start) / 1e9;
}

/** Matrices that one core inverts in a second. */
double inversionsPerSec(uint32_t symbolCount) {
  const Engine& engine = *availableEngines().front();
  std::vector<uint8_t> vector(symbolCount);
  int count = 0;
  const auto start = std::chrono::steady_clock::now();
  do {
    detail::Elimination elimination;
    if (!elimination.initialize(engine, symbolCount).ok()) return 0;
    for (uint32_t seed = 1; elimination.rank() < symbolCount; seed++) {
      coefficientsOf(seed, vector);
      elimination.add(vector.data());
    }
    count++;
  } while (secondsSince(start) < 0.05);
  return count / secondsSince(start);
}

/**
 * What it takes to pin the memory of one group and to release it again, beside a copy of it by one core. Memory that
 * the device has not pinned itself could be used in place if pinning took less.
 */
void measurePinning(const gpu::Context& context, const char* library, Shape shape, Rows& rows) {
  void* driver = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return;
  const auto pin = reinterpret_cast<int (*)(void*, size_t, unsigned)>(dlsym(driver, "cuMemHostRegister_v2"));
  const auto unpin = reinterpret_cast<int (*)(void*)>(dlsym(driver, "cuMemHostUnregister"));
  if (pin == nullptr || unpin == nullptr) return;
  constexpr int kTimes = 200;
  const size_t bytes = size_t{shape.symbolCount} * shape.symbolBytes;
  const HostMemory groups(nullptr, bytes * kTimes), copy(nullptr, bytes);
  fillRandom(groups.at(0), bytes * kTimes, 5);
  memset(copy.at(0), 1, bytes);
  must(context.attach());
  const auto microseconds = [&](const auto& work) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kTimes; i++) work(groups.at(bytes * static_cast<size_t>(i)));
    return std::to_string(secondsSince(start) * 1e6 / kTimes);
  };
  const std::string size = std::to_string(bytes) + " bytes";
  rows.fact("microseconds to copy " + size, microseconds([&](uint8_t* from) { memcpy(copy.at(0), from, bytes); }));
  rows.fact("microseconds to pin and release " + size, microseconds([&](uint8_t* group) {
              must(context.errorOf(pin(group, bytes, 0), "pinning"));
              must(context.errorOf(unpin(group), "releasing"));
            }));
}

}  // namespace

void measureHost(gpu::Device& device, const char* library, const Scale& scale, Rows& rows) {
  for (const Shape shape : scale.shapes) {
    const Groups groups(&device, scale.hostBytes, shape);
    const auto add = [&](const char* what, const char* coder, const std::vector<Task>& tasks) {
      const double rate = deviceRate(device, tasks, groups.codedBytes(), scale.repeats);
      mustBeRight(groups, coder);
      memset(groups.outputs.at(0), 0, groups.count * groups.groupBytes());
      rows.add({what, coder, shape.symbolCount, shape.symbolBytes, rate});
    };
    add("host encode", "GPU", tasksOf(groups, [&](size_t g) { return groups.task(g); }));
    auto recodes = tasksOf(groups, [&](size_t g) { return groups.task(g); });
    for (size_t g = 0; g < groups.count; g++) recodes.push_back(groups.vectorTask(g));
    add("host recode", "GPU", recodes);
    add("host decode", "GPU, without inversion", tasksOf(groups, [&](size_t g) { return groups.decodeTask(g); }));
  }
  const Shape shape = scale.usual;
  // As the proxy does it: sources in the encoder's memory, outputs in pinned memory.
  for (const Shape served : {shape, Shape{shape.symbolCount, 1100}}) {
    const Groups sources(nullptr, scale.hostBytes, served), outputs(&device, scale.hostBytes, served, true);
    auto tasks = tasksOf(outputs, [&](size_t g) { return outputs.heldTask(g); });
    for (size_t g = 0; g < tasks.size(); g++) tasks[g].sources = sources.sources.at(sources.groupBytes() * g);
    const double rate = deviceRate(device, tasks, outputs.codedBytes(), scale.repeats);
    mustBeRight(outputs, "GPU");
    rows.add({"host encode", "GPU, sources that stay", served.symbolCount, served.symbolBytes, rate});
  }
  {
    const Groups pinned(&device, scale.hostBytes, shape);
    const auto start = std::chrono::steady_clock::now();
    const double before = threadSeconds();
    deviceRate(device, tasksOf(pinned, [&](size_t g) { return pinned.task(g); }), pinned.codedBytes(), scale.repeats);
    rows.fact("share of a core that the waiting thread takes",
              std::to_string((threadSeconds() - before) / secondsSince(start)));
  }
  const Groups groups(nullptr, scale.hostBytes, shape);
  const auto tasks = tasksOf(groups, [&](size_t g) { return groups.task(g); });
  const double rate = deviceRate(device, tasks, groups.codedBytes(), scale.repeats);
  mustBeRight(groups, "GPU");
  rows.add({"host encode", "GPU, pageable memory", shape.symbolCount, shape.symbolBytes, rate});
  measurePinning(device.context(), library, shape, rows);
}

void measureCpu(const Scale& scale, Rows& rows) {
  const unsigned cores = std::thread::hardware_concurrency();
  for (const Shape shape : scale.shapes) {
    const Groups groups(nullptr, scale.threadBytes * cores, shape);
    const double rate = sharedRate(nullptr, groups, cores, scale.cpuSeconds);
    if (groups.count <= cores) mustBeRight(groups, "CPU");
    rows.add({"host encode", "CPU, all cores", shape.symbolCount, shape.symbolBytes, rate});
  }
  uint32_t last = 0;
  for (const Shape shape : scale.shapes) {
    if (shape.symbolCount == last) continue;
    last = shape.symbolCount;
    rows.fact("inversions per second on one core, n = " + std::to_string(last),
              std::to_string(static_cast<long>(inversionsPerSec(last))));
  }
}

void measureBoth(gpu::Device& device, const Scale& scale, Rows& rows) {
  const unsigned cores = std::thread::hardware_concurrency();
  const Groups groups(&device, scale.hostBytes, scale.usual);
  const double seconds = scale.cpuSeconds * 5;
  const double cpu = sharedRate(nullptr, groups, cores, seconds);
  const double gpu = sharedRate(&device, groups, 0, seconds);
  const double both = sharedRate(&device, groups, cores, seconds);
  const double fewer = sharedRate(&device, groups, cores > 1 ? cores - 1 : 1, seconds);
  mustBeRight(groups, "both coders");
  const auto [n, bytes] = scale.usual;
  rows.add({"one queue", "CPU alone", n, bytes, cpu});
  rows.add({"one queue", "GPU alone", n, bytes, gpu});
  rows.add({"one queue", "both", n, bytes, both});
  rows.add({"one queue", "both, one core less", n, bytes, fewer});
  rows.fact("both coders over the sum of each alone", std::to_string(std::max(both, fewer) / (cpu + gpu)));
}

}  // namespace tributary::bench
