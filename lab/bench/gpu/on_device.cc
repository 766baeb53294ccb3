/** Measures the device alone: copy rates, and each kernel with its data in device memory. */
#include <algorithm>
#include <cstring>
#include <functional>

#include "parts.h"

namespace tributary::bench {
namespace {

using namespace tributary::gpu;

/** Device memory that the bench frees. */
struct Memory {
  Memory(const Context& context, size_t bytes) : context(context), bytes(bytes) {
    must(context.errorOf(context.driver().allocate(&address, bytes), "device memory"));
  }
  ~Memory() { context.driver().release(address); }
  void write(const void* from, size_t count) const {
    must(context.errorOf(context.driver().copyToDevice(address, from, count, nullptr), "copy"));
    must(context.errorOf(context.driver().waitForStream(nullptr), "copy"));
  }
  void read(void* to, size_t offset, size_t count) const {
    must(context.errorOf(context.driver().copyToHost(to, address + offset, count, nullptr), "copy"));
    must(context.errorOf(context.driver().waitForStream(nullptr), "copy"));
  }
  const Context& context;
  DeviceAddress address = 0;
  size_t bytes;
};

/** The median time of `work` on the device's default stream. */
double medianSeconds(const Context& context, int repeats, const std::function<void()>& work) {
  const Driver& driver = context.driver();
  EventHandle start = nullptr, end = nullptr;
  must(context.errorOf(driver.createEvent(&start, 0), "event"));
  must(context.errorOf(driver.createEvent(&end, 0), "event"));
  std::vector<float> times;
  for (int i = -1; i < repeats; i++) {
    driver.recordEvent(start, nullptr);
    work();
    driver.recordEvent(end, nullptr);
    must(context.errorOf(driver.waitForStream(nullptr), "kernel"));
    float ms = 0;
    must(context.errorOf(driver.elapsedMs(&ms, start, end), "event"));
    if (i >= 0) times.push_back(ms);
  }
  driver.destroyEvent(start);
  driver.destroyEvent(end);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2] / 1e3;
}

enum class Operation { kEncode, kRecode, kDecode };
constexpr const char* kOperationNames[] = {"encode", "recode", "decode"};

/** Jobs that fill the device, in memory of their own. */
class Load {
 public:
  Load(const Context& context, const Memory& sources, size_t sourceBytes, Shape shape, Operation operation,
       Kernel product, uint32_t parts)
      : context_(context),
        shape_(shape),
        operation_(operation),
        product_(product),
        stride_(static_cast<uint32_t>(paddedBytes(shape.symbolBytes))),
        groups_(static_cast<uint32_t>(std::max<size_t>(1, sourceBytes / (size_t{stride_} * shape.symbolCount)))),
        coefficientStride_(ceilDivide(shape.symbolCount, kCoefficientAlign) * kCoefficientAlign),
        outputs_(context, groupBytes() * groups_),
        vectors_(context, vectorBytes() * groups_ * 2),
        coefficients_(context, size_t{coefficientStride_} * shape.symbolCount * groups_),
        words_(context, wordBytes(shape.symbolCount, shape.symbolCount) * groups_),
        seeds_(context, sizeof(uint32_t) * shape.symbolCount * groups_),
        jobs_(context, sizeof(Job) * groups_ * 2) {
    std::vector<uint32_t> seeds(size_t{shape.symbolCount} * groups_);
    for (size_t i = 0; i < seeds.size(); i++) seeds[i] = seedOf(i);
    seeds_.write(seeds.data(), seeds.size() * sizeof(uint32_t));
    std::vector<Job> jobs;
    for (uint32_t g = 0; g < groups_; g++) {
      add(jobs, g, sources.address + groupBytes() * g, outputs_.address + groupBytes() * g, stride_, parts);
    }
    // The vectors of a recoder are short symbols, multiplied by the same coefficients.
    for (uint32_t g = 0; g < groups_ && operation == Operation::kRecode; g++) {
      const auto stride = static_cast<uint32_t>(paddedBytes(shape.symbolCount));
      add(jobs, g, vectors_.address + vectorBytes() * g, vectors_.address + vectorBytes() * (groups_ + g), stride, 1);
    }
    jobs_.write(jobs.data(), jobs.size() * sizeof(Job));
    jobCount_ = static_cast<uint32_t>(jobs.size());
    run();
    must(context_.errorOf(context_.driver().waitForStream(nullptr), "kernel"));
    next_.firstBlockOfDraw = operation == Operation::kEncode ? next_.firstBlockOfDraw : 0;
  }

  static uint32_t seedOf(size_t index) { return static_cast<uint32_t>(index * 2654435761u + 12345); }

  /** Runs all kernels of the operation. A decode has its coefficients already. */
  void run() const {
    const auto launch = [this](Kernel kernel, uint32_t blocks) {
      if (blocks > 0) {
        must(context_.launch(kernel, nullptr, blocks, jobs_.address, jobCount_,
                             context_.segmentSources(shape_.symbolCount)));
      }
    };
    launch(Kernel::kDrawCoefficients, next_.firstBlockOfDraw);
    if (product_ == Kernel::kProductTensor) launch(Kernel::kExpandCoefficients, next_.firstBlockOfExpand);
    launch(product_, next_.firstBlockOfProduct);
  }

  /** Compares some rows of the outputs with the reference engine. */
  bool isRight(const uint8_t* sources) const {
    std::vector<uint8_t> row(stride_);
    for (const uint32_t g : {0u, groups_ / 2, groups_ - 1}) {
      for (uint32_t o = g % 3; o < shape_.symbolCount; o += stepOfRows(shape_)) {
        outputs_.read(row.data(), groupBytes() * g + size_t{stride_} * o, stride_);
        if (!isCoded(sources + groupBytes() * g, stride_, shape_, seedOf(size_t{g} * shape_.symbolCount + o),
                     row.data())) {
          return false;
        }
      }
    }
    return true;
  }

  double measure(int repeats) const {
    const double seconds = medianSeconds(context_, repeats, [this] { run(); });
    return static_cast<double>(shape_.symbolBytes) * shape_.symbolCount * groups_ / seconds / 1e9;
  }

 private:
  size_t groupBytes() const { return size_t{stride_} * shape_.symbolCount; }
  size_t vectorBytes() const { return paddedBytes(shape_.symbolCount) * shape_.symbolCount; }

  void add(std::vector<Job>& jobs, uint32_t g, DeviceAddress sources, DeviceAddress outputs, uint32_t stride,
           uint32_t parts) {
    const uint32_t n = shape_.symbolCount;
    const KernelShape& kernel = shapeOf(product_);
    const uint32_t partsMax = ceilDivide(n, kernel.outputs);
    const uint32_t ownParts = product_ == Kernel::kProductTensor ? std::min(parts, partsMax) : partsMax;
    jobs.push_back({sources, outputs, coefficients_.address + size_t{coefficientStride_} * n * g,
                    seeds_.address + sizeof(uint32_t) * n * g, words_.address + wordBytes(n, n) * g, n, n, stride,
                    coefficientStride_, next_.firstBlockOfDraw, next_.firstBlockOfExpand, next_.firstBlockOfProduct,
                    ownParts});
    next_.firstBlockOfDraw += blocksOfDraw(n, n);
    next_.firstBlockOfExpand += blocksOfExpand(n, n);
    next_.firstBlockOfProduct += ceilDivide(stride, kernel.tileBytes) * ownParts;
  }

  const Context& context_;
  Shape shape_;
  Operation operation_;
  Kernel product_;
  uint32_t stride_;
  uint32_t groups_;
  uint32_t coefficientStride_;
  Memory outputs_, vectors_, coefficients_, words_, seeds_, jobs_;
  uint32_t jobCount_ = 0;
  /** The number of blocks of each kernel. */
  Job next_ = {};
};

}  // namespace

void measureCopies(const Context& context, const Scale& scale, Rows& rows) {
  const Driver& driver = context.driver();
  const size_t bytes = scale.deviceBytes;
  const Memory first(context, bytes), second(context, bytes);
  void *from = nullptr, *to = nullptr;
  must(context.errorOf(driver.allocatePinned(&from, bytes, 0), "pinned memory"));
  must(context.errorOf(driver.allocatePinned(&to, bytes, 0), "pinned memory"));
  fillRandom(static_cast<uint8_t*>(from), bytes, 1);
  StreamHandle up = nullptr, down = nullptr;
  must(context.errorOf(driver.createStream(&up, 1), "stream"));
  must(context.errorOf(driver.createStream(&down, 1), "stream"));
  const auto time = [&](bool uploads, bool downloads) {
    double best = 1e9;
    for (int i = 0; i <= scale.repeats; i++) {
      const auto start = std::chrono::steady_clock::now();
      if (uploads) must(context.errorOf(driver.copyToDevice(first.address, from, bytes, up), "copy"));
      if (downloads) must(context.errorOf(driver.copyToHost(to, second.address, bytes, down), "copy"));
      must(context.errorOf(driver.waitForStream(up), "copy"));
      must(context.errorOf(driver.waitForStream(down), "copy"));
      best = std::min(best, secondsSince(start));
    }
    return static_cast<double>(bytes) / best / 1e9;
  };
  rows.add({"copy", "to the device", 0, 0, time(true, false)});
  rows.add({"copy", "to the host", 0, 0, time(false, true)});
  rows.add({"copy", "both ways, each", 0, 0, time(true, true)});
  driver.destroyStream(up);
  driver.destroyStream(down);
  driver.releasePinned(from);
  driver.releasePinned(to);
}

void measureKernels(const Context& context, const Scale& scale, Rows& rows) {
  std::vector<uint8_t> bytes(scale.deviceBytes);
  fillRandom(bytes.data(), bytes.size(), 2);
  const Memory sources(context, bytes.size());
  sources.write(bytes.data(), bytes.size());
  const auto measure = [&](Shape shape, Operation operation, Kernel product, uint32_t parts, const std::string& coder) {
    const Load load(context, sources, bytes.size(), shape, operation, product, parts);
    if (!load.isRight(bytes.data())) {
      must({Failure::kMisuse, coder + " differs from the reference engine at " + std::to_string(shape.symbolCount) +
                                  " x " + std::to_string(shape.symbolBytes)});
    }
    rows.add({std::string("device ") + kOperationNames[static_cast<int>(operation)], coder, shape.symbolCount,
              shape.symbolBytes, load.measure(scale.repeats)});
  };
  for (const Shape shape : scale.shapes) {
    for (const Operation operation : {Operation::kEncode, Operation::kRecode, Operation::kDecode}) {
      measure(shape, operation, Kernel::kProductTensor, 1, "tensor");
    }
  }
  for (const Shape shape : scale.shapes) {
    if (shape.symbolBytes != 4096) continue;
    measure(shape, Operation::kEncode, Kernel::kProductTensor, 2, "tensor, 2 parts");
    measure(shape, Operation::kEncode, Kernel::kProductTensor, 4, "tensor, 4 parts");
    measure(shape, Operation::kEncode, Kernel::kProductTables, 1, "tables");
    measure(shape, Operation::kEncode, Kernel::kProductMasks, 1, "masks");
  }
}

}  // namespace tributary::bench
