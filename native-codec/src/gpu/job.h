/** What the host tells the kernels about one task. kernels.cu and the host code share this file. */
#ifndef TRIBUTARY_GPU_JOB_H_
#define TRIBUTARY_GPU_JOB_H_

#if defined(__CUDACC_RTC__)
using uint8_t = unsigned char;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
#else
#include <cstdint>
#endif

namespace tributary::gpu {

/** Rows of symbols start every multiple of this many bytes. A tile of the tensor kernel is as wide. */
constexpr uint32_t kTileBytes = 128;
/** A tile of the other two kernels. A warp covers it with 16 bytes a lane. */
constexpr uint32_t kWideTileBytes = 512;
/** Coefficient rows start every multiple of this many bytes. The bytes after the last coefficient are zero. */
constexpr uint32_t kCoefficientAlign = 16;
/** Sources whose bits share a set of words (expandCoefficients), and outputs of one warp. */
constexpr uint32_t kWordSources = 24;
constexpr uint32_t kWarpOutputs = 8;
/** Outputs of a block of the tensor kernel, of the table kernel and of the mask kernel. */
constexpr uint32_t kTensorOutputs = 32;
constexpr uint32_t kTableOutputs = 128;
constexpr uint32_t kMaskOutputs = 8;
/** Shared memory of a block: of the tensor kernel for each source of a segment, of the other kernels in all. */
constexpr uint32_t kTensorSourceBytes = 512;
constexpr uint32_t kTableSharedBytes = 128 * 1024;
constexpr uint32_t kMaskSharedBytes = 4 * 1024;

/**
 * One product: outputs = coefficients x sources. All addresses are in device memory.
 * `seeds` is 0, or has one seed for each output; drawCoefficients then writes `coefficients`.
 */
struct Job {
  uint64_t sources;
  uint64_t outputs;
  uint64_t coefficients;
  uint64_t seeds;
  /** The bits of the coefficients in the order of the tensor units: expandCoefficients. */
  uint64_t words;
  uint32_t sourceCount;
  uint32_t outputCount;
  /** Bytes from row to row of sources and of outputs: a multiple of kTileBytes. */
  uint32_t stride;
  uint32_t coefficientStride;
  /** The first block of this job in a launch of each kernel. */
  uint32_t firstBlockOfDraw;
  uint32_t firstBlockOfExpand;
  uint32_t firstBlockOfProduct;
  /** Blocks that share the outputs of one column of tiles. */
  uint32_t parts;
};

constexpr uint32_t ceilDivide(uint32_t count, uint32_t by) { return (count + by - 1) / by; }

constexpr uint32_t blocksOfDraw(uint32_t sourceCount, uint32_t outputCount) {
  return ceilDivide(outputCount * ceilDivide(sourceCount, 8), 128);
}
constexpr uint32_t wordSets(uint32_t sourceCount) { return ceilDivide(sourceCount, kWordSources); }
constexpr uint32_t blocksOfExpand(uint32_t sourceCount, uint32_t outputCount) {
  return ceilDivide(outputCount, kWarpOutputs) * wordSets(sourceCount);
}
/** Bytes of Job::words. */
constexpr uint64_t wordBytes(uint32_t sourceCount, uint32_t outputCount) {
  return uint64_t{blocksOfExpand(sourceCount, outputCount)} * 128 * 16;
}

}  // namespace tributary::gpu

#endif  // TRIBUTARY_GPU_JOB_H_
