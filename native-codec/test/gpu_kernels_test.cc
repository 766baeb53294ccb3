/**
 * Compares the GPU's kernels, run on the host, with the reference engine: random jobs, several in one launch.
 *
 *     gpu_kernels_test               24 cases
 *     gpu_kernels_test SEED          one case
 */
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "engine.h"
#include "gpu/kernels_host.h"
#include "support.h"

namespace {

using namespace tributary;
using namespace tributary::gpu;
using test::Block;
using test::Random;

constexpr uint32_t kSegmentSources = 48;

struct Shape {
  uint32_t sourceCount;
  uint32_t outputCount;
  uint32_t bytes;
};

/** A job with its memory. */
struct Task {
  Task(Random& random, Shape shape)
      : shape(shape),
        stride(ceilDivide(shape.bytes, kTileBytes) * kTileBytes),
        coefficientStride(ceilDivide(shape.sourceCount, kCoefficientAlign) * kCoefficientAlign),
        sources(random, size_t{shape.sourceCount} * stride),
        outputs(random, size_t{shape.outputCount} * stride),
        coefficients(random, size_t{shape.outputCount} * coefficientStride),
        seeds(random, shape.outputCount * sizeof(uint32_t)),
        words(random, wordBytes(shape.sourceCount, shape.outputCount)) {}

  /** Takes the job's blocks from `next`, the first free block of each kernel. */
  Job job(Job& next, uint32_t tileBytes, uint32_t outputsOfBlock, uint32_t parts) {
    const auto address = [](Block& block) { return reinterpret_cast<uint64_t>(block.bytes.get()); };
    const Job job = {address(sources),
                     address(outputs),
                     address(coefficients),
                     address(seeds),
                     address(words),
                     shape.sourceCount,
                     shape.outputCount,
                     stride,
                     coefficientStride,
                     next.firstBlockOfDraw,
                     next.firstBlockOfExpand,
                     next.firstBlockOfProduct,
                     parts == 0 ? ceilDivide(shape.outputCount, outputsOfBlock) : parts};
    next.firstBlockOfDraw += blocksOfDraw(shape.sourceCount, shape.outputCount);
    next.firstBlockOfExpand += blocksOfExpand(shape.sourceCount, shape.outputCount);
    next.firstBlockOfProduct += ceilDivide(stride, tileBytes) * job.parts;
    return job;
  }

  /** True if the outputs are right, and the coefficients are those of the seeds and then zeros. */
  bool isRight() const {
    std::vector<const uint8_t*> sourceRows;
    for (uint32_t s = 0; s < shape.sourceCount; s++) sourceRows.push_back(sources.bytes.get() + size_t{s} * stride);
    for (uint32_t o = 0; o < shape.outputCount; o++) {
      Block factors(coefficientStride);
      memset(factors.bytes.get(), 0, factors.size);
      uint32_t seed = 0;
      memcpy(&seed, seeds.bytes.get() + o * sizeof seed, sizeof seed);
      coefficientsOf(seed, {factors.bytes.get(), shape.sourceCount});
      const uint8_t* row = coefficients.bytes.get() + size_t{o} * coefficientStride;
      if (memcmp(row, factors.bytes.get(), coefficientStride) != 0) return false;
      Block expected(shape.bytes);
      uint8_t* expectedRow = expected.bytes.get();
      findEngine("reference")
          ->multiply({&expectedRow, 1, sourceRows.data(), shape.sourceCount, row, coefficientStride, shape.bytes,
                      nullptr, false});
      if (memcmp(expectedRow, outputs.bytes.get() + size_t{o} * stride, shape.bytes) != 0) return false;
    }
    return true;
  }

  Shape shape;
  uint32_t stride;
  uint32_t coefficientStride;
  Block sources;
  Block outputs;
  Block coefficients;
  Block seeds;
  Block words;
};

struct Product {
  const char* name;
  Kernel kernel;
  uint32_t tileBytes;
  uint32_t outputsOfBlock;
  uint32_t sharedBytes;
};

const Product kProducts[] = {
    {"tensor", Kernel::kProductTensor, kTileBytes, kTensorOutputs, kSegmentSources * kTensorSourceBytes},
    {"tables", Kernel::kProductTables, kWideTileBytes, kTableOutputs, kTableSharedBytes},
    {"masks", Kernel::kProductMasks, kWideTileBytes, kMaskOutputs, kMaskSharedBytes},
};

Shape anyShape(Random& random) {
  switch (random.below(5)) {
    case 0:
      return {static_cast<uint32_t>(90 + random.below(60)), static_cast<uint32_t>(1 + random.below(70)),
              static_cast<uint32_t>(1 + random.below(128))};
    case 1:
      return {1, static_cast<uint32_t>(300 + random.below(100)), static_cast<uint32_t>(1 + random.below(128))};
    default:
      return {static_cast<uint32_t>(1 + random.below(60)), static_cast<uint32_t>(1 + random.below(45)),
              static_cast<uint32_t>(1 + random.below(600))};
  }
}

bool passes(uint64_t seed) {
  Random random(seed);
  const Product& product = kProducts[seed % 3];
  std::vector<std::unique_ptr<Task>> tasks;
  std::vector<Job> jobs;
  Job next = {};
  for (size_t count = 1 + random.below(3); tasks.size() < count;) {
    tasks.push_back(std::make_unique<Task>(random, anyShape(random)));
    const bool sharesOutputs = product.kernel == Kernel::kProductTensor && random.below(2) == 0;
    jobs.push_back(tasks.back()->job(next, product.tileBytes, product.outputsOfBlock, sharesOutputs ? 1 : 0));
  }
  const auto jobCount = static_cast<uint32_t>(jobs.size());
  launchOnHost(Kernel::kDrawCoefficients, next.firstBlockOfDraw, 0, jobs.data(), jobCount, 0);
  launchOnHost(Kernel::kExpandCoefficients, next.firstBlockOfExpand, 0, jobs.data(), jobCount, 0);
  launchOnHost(product.kernel, next.firstBlockOfProduct, product.sharedBytes, jobs.data(), jobCount, kSegmentSources);
  for (const auto& task : tasks) {
    if (task->isRight()) continue;
    fprintf(stderr,
            "FAILED %s: %u sources, %u outputs, %u bytes\n  seed %llu, replay: node native-codec/test.mjs gpu %llu\n",
            product.name, task->shape.sourceCount, task->shape.outputCount, task->shape.bytes,
            static_cast<unsigned long long>(seed), static_cast<unsigned long long>(seed));
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t first = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1;
  const uint64_t cases = argc > 1 ? 1 : 24;
  uint64_t failed = 0;
  for (uint64_t seed = first; seed < first + cases; seed++) failed += !passes(seed);
  printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(cases - failed),
         static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}
