/**
 * Matrix products over GF(2^8) for a GPU, for many jobs in one launch (job.h). The same source is compiled for the
 * host, where a test compares it with the reference engine.
 *
 *   drawCoefficients     seeds to coefficients: docs/spec/protocol.md §5.3
 *   expandCoefficients   coefficients to the bits that productTensor multiplies by
 *   productTensor        the product by the matrix units, as a product over GF(2)
 *   productTables        the product by tables of multiples in shared memory
 *   productMasks         the product by masked XORs and Horner's rule
 *
 * A row of sources or outputs starts on a multiple of kTileBytes. The kernels read and write whole tiles, so the bytes
 * of a row after its symbol are undefined.
 */
#include "gpu/job.h"
#include "gpu/simt.h"

namespace tributary::gpu {

constexpr uint32_t kLowBits = 0x01010101;
constexpr uint32_t kReduction = 0x1D;

/** The bit matrix of each factor: bit j of row i of byte c is bit i of c x 2^j. */
struct BitRows {
  uint8_t of[256][8];
};

constexpr BitRows makeBitRows() {
  BitRows rows{};
  for (uint32_t factor = 0; factor < 256; factor++) {
    uint32_t image = factor;
    for (uint32_t j = 0; j < 8; j++) {
      for (uint32_t i = 0; i < 8; i++) rows.of[factor][i] |= static_cast<uint8_t>((image >> i & 1) << j);
      image = (image << 1 ^ (image >> 7) * kReduction) & 0xFF;
    }
  }
  return rows;
}

TRIBUTARY_TABLE BitRows kBitRows = makeBitRows();

template <typename T>
TRIBUTARY_DEVICE T* at(uint64_t address) {
  return reinterpret_cast<T*>(address);
}

/** The last job whose first block, by `firstBlock`, is at most this block. */
TRIBUTARY_DEVICE const Job& findJob(const Job* jobs, uint32_t jobCount, uint32_t Job::* firstBlock) {
  uint32_t low = 0;
  for (uint32_t high = jobCount; high - low > 1;) {
    const uint32_t middle = (low + high) / 2;
    if (jobs[middle].*firstBlock <= blockIdx.x) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return jobs[low];
}

/** Four field elements, each times 2. */
TRIBUTARY_DEVICE uint32_t doubled(uint32_t x) { return (x << 1 & 0xFEFEFEFE) ^ (x >> 7 & kLowBits) * kReduction; }

TRIBUTARY_DEVICE uint4 doubled(uint4 x) { return make_uint4(doubled(x.x), doubled(x.y), doubled(x.z), doubled(x.w)); }

TRIBUTARY_DEVICE void addTo(uint4& sum, uint4 x) {
  sum.x ^= x.x;
  sum.y ^= x.y;
  sum.z ^= x.z;
  sum.w ^= x.w;
}

TRIBUTARY_DEVICE uint64_t mixed(uint64_t state) {
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EB;
  return state ^ (state >> 31);
}

/** Word `index` (from 1) of the stream of `seed`, cut to `bytes` bytes. */
TRIBUTARY_DEVICE uint64_t streamWord(uint32_t seed, uint64_t index, uint32_t bytes) {
  const uint64_t word = mixed(seed + index * 0x9E3779B97F4A7C15);
  return bytes >= 8 ? word : word & ((uint64_t{1} << 8 * bytes) - 1);
}

/** One thread writes eight coefficients of one output. */
TRIBUTARY_KERNEL(128, 8) drawCoefficients(const Job* jobs, uint32_t jobCount) {
  const Job& job = findJob(jobs, jobCount, &Job::firstBlockOfDraw);
  const uint32_t wordCount = ceilDivide(job.sourceCount, 8);
  const uint32_t item = (blockIdx.x - job.firstBlockOfDraw) * 128 + threadIdx.x;
  const uint32_t output = item / wordCount;
  const uint32_t word = item % wordCount;
  if (job.seeds == 0 || output >= job.outputCount) return;
  const uint32_t seed = at<const uint32_t>(job.seeds)[output];
  const uint32_t lastBytes = job.sourceCount - 8 * (wordCount - 1);
  uint64_t start = 0;
  for (uint64_t seen = 0; seen == 0; start += wordCount) {
    for (uint32_t i = 0; i < wordCount && seen == 0; i++) {
      seen = streamWord(seed, start + i + 1, i + 1 < wordCount ? 8 : lastBytes);
    }
  }
  start -= wordCount;
  const uint64_t value = streamWord(seed, start + word + 1, word + 1 < wordCount ? 8 : lastBytes);
  at<uint64_t>(job.coefficients)[(uint64_t{output} * job.coefficientStride) / 8 + word] = value;
  if (word + 1 == wordCount && wordCount % 2 == 1) {
    at<uint64_t>(job.coefficients)[(uint64_t{output} * job.coefficientStride) / 8 + word + 1] = 0;
  }
}

/** The four bits of `nibble`, one in each byte. */
TRIBUTARY_DEVICE uint32_t spread(uint32_t nibble) { return nibble * 0x00204081 & kLowBits; }

/**
 * Makes the words of the tensor product. A block makes those of kWarpOutputs outputs and kWordSources sources: for each
 * of 4 fragments (two outputs each) and each lane, the 4 registers that the matrix units take for A. Bit t of a byte is
 * the element of step t, whose sources are 4t + lane % 4. Register bit 0 chooses the output; bit 1 chooses the bits 0-3
 * or 4-7 of the source.
 */
TRIBUTARY_KERNEL(128, 8) expandCoefficients(const Job* jobs, uint32_t jobCount) {
  const Job& job = findJob(jobs, jobCount, &Job::firstBlockOfExpand);
  const uint32_t block = blockIdx.x - job.firstBlockOfExpand;
  const uint32_t sets = wordSets(job.sourceCount);
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t firstSource = block % sets * kWordSources + lane % 4;
  uint32_t words[4] = {0, 0, 0, 0};
  TRIBUTARY_UNROLL()
  for (uint32_t r = 0; r < 2; r++) {
    const uint32_t output = block / sets * kWarpOutputs + threadIdx.x / 32 * 2 + r;
    if (output >= job.outputCount) break;
    const uint8_t* row = at<const uint8_t>(job.coefficients) + uint64_t{output} * job.coefficientStride;
    TRIBUTARY_UNROLL()
    for (uint32_t t = 0; t < kWordSources / 4; t++) {
      const uint32_t source = firstSource + 4 * t;
      const uint32_t bits = source < job.sourceCount ? kBitRows.of[row[source]][lane / 4] : 0;
      words[r] |= spread(bits & 15) << t;
      words[r + 2] |= spread(bits >> 4) << t;
    }
  }
  at<uint4>(job.words)[uint64_t{block} * 128 + threadIdx.x] = make_uint4(words[0], words[1], words[2], words[3]);
}

/*
 * productTensor. A block of 4 warps multiplies kTensorOutputs outputs by one tile of kTileBytes columns; a warp has
 * kWarpOutputs of the outputs. Over GF(2) a warp's product has 64 rows (bits of outputs) and 8 x sourceCount terms
 * (bits of sources). The matrix units count the ones; the parity of a count is the result.
 *
 * An element of B holds the bits of two columns, which are 64 bytes apart: one has value 1, the other 128. Three steps
 * (12 sources) make at most 96 ones, so the low count does not reach the high one, and the parities are bits 0 and 7.
 * fold() adds them to `parity`, a byte for each sum.
 *
 * Fragment f of B has 8 double columns. Column n of it is byte n / 2 * 16 + 2 f + n % 2 of the tile (and the byte 64
 * after that), so that at the end each lane has 16 bytes of a row.
 */
constexpr uint32_t kSteps = 3;
constexpr uint32_t kRowFragments = 4;
constexpr uint32_t kColumnFragments = 8;

/** Stores the bits of `count` sources, from `rows` on, as elements of B: [step][fragment][lane], 8 bytes each. */
TRIBUTARY_DEVICE void stageSources(uint2* staged, const uint8_t* rows, uint32_t stride, uint32_t count) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t swap = lane >> 3 & 1;
  const uint32_t steps = ceilDivide(count, 4);
  TRIBUTARY_UNROLL(4)
  for (uint32_t item = threadIdx.x / 32; item < steps * 2; item += 4) {
    const uint32_t step = item / 2;
    const uint32_t word = (lane >> 2 & 1) * 4 + swap + (lane >> 4) * 2 + item % 2 * 8;
    uint32_t source = step * 4 + lane % 4;
    if (source >= count) source = count - 1;
    const uint32_t* row = at<const uint32_t>(reinterpret_cast<uint64_t>(rows) + uint64_t{source} * stride);
    const uint32_t near = row[word];
    const uint32_t far = row[word + 16];
    TRIBUTARY_UNROLL()
    for (uint32_t e = 0; e < 4; e++) {
      const uint32_t byte = e ^ swap;
      const uint32_t x = near >> 8 * byte;
      const uint32_t y = far >> 8 * byte;
      const uint32_t fragment = word % 4 * 2 + byte / 2;
      const uint32_t column = word / 4 * 2 + byte % 2;
      staged[(step * kColumnFragments + fragment) * 32 + column * 4 + lane % 4] =
          make_uint2(((x & 15) * 0x00204081 & kLowBits) | ((y & 15) * 0x10204080 & 0x80808080),
                     ((x >> 4 & 15) * 0x00204081 & kLowBits) | ((y >> 4 & 15) * 0x10204080 & 0x80808080));
    }
  }
}

/** One step: 4 sources. `shift` chooses the step's bits in `words`. */
template <bool first>
TRIBUTARY_DEVICE void multiplyStep(uint32_t (&sums)[kRowFragments][kColumnFragments][4], const uint4 (&words)[4],
                                   uint32_t shift, const uint2* staged) {
  uint32_t a[kRowFragments][4];
  TRIBUTARY_UNROLL()
  for (uint32_t f = 0; f < kRowFragments; f++) {
    a[f][0] = words[f].x >> shift & kLowBits;
    a[f][1] = words[f].y >> shift & kLowBits;
    a[f][2] = words[f].z >> shift & kLowBits;
    a[f][3] = words[f].w >> shift & kLowBits;
  }
  TRIBUTARY_UNROLL()
  for (uint32_t c = 0; c < kColumnFragments; c++) {
    const uint2 b = staged[c * 32];
    TRIBUTARY_UNROLL()
    for (uint32_t f = 0; f < kRowFragments; f++) multiplyTile<first>(sums[f][c], a[f], b);
  }
}

/** Adds the parities of four sums to the four bytes of `parity`. `high` is 65536; see productTensor. */
TRIBUTARY_DEVICE void fold(uint32_t& parity, const uint32_t (&sums)[4], uint32_t high) {
  parity ^= bytePermute(sums[1] * high + sums[0], sums[3] * high + sums[2], 0x6420);
}

using Parities = uint32_t[kRowFragments][kColumnFragments];

/** Adds the product of `count` staged sources to `parities`. `words` starts at the set of the first of them. */
TRIBUTARY_DEVICE void multiplySegment(Parities& parities, const uint4* words, const uint2* staged, uint32_t count,
                                      uint32_t high) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t steps = ceilDivide(count, 4);
  staged += lane;
  words += lane;
  uint4 next[kRowFragments];
  TRIBUTARY_UNROLL()
  for (uint32_t f = 0; f < kRowFragments; f++) next[f] = words[f * 32];
  for (uint32_t step = 0; step < steps;) {
    uint4 current[kRowFragments];
    TRIBUTARY_UNROLL()
    for (uint32_t f = 0; f < kRowFragments; f++) current[f] = next[f];
    if (step + 2 * kSteps < steps) {
      words += 128;
      TRIBUTARY_UNROLL()
      for (uint32_t f = 0; f < kRowFragments; f++) next[f] = words[f * 32];
    }
    TRIBUTARY_UNROLL(1)
    for (uint32_t half = 0; half < 2 && step < steps; half++, step += kSteps) {
      uint32_t sums[kRowFragments][kColumnFragments][4];
      const uint2* b = staged + step * kColumnFragments * 32;
      multiplyStep<true>(sums, current, 0, b);
      if (step + 1 < steps) multiplyStep<false>(sums, current, 1, b + kColumnFragments * 32);
      if (step + 2 < steps) multiplyStep<false>(sums, current, 2, b + 2 * kColumnFragments * 32);
      TRIBUTARY_UNROLL()
      for (uint32_t f = 0; f < kRowFragments; f++) {
        current[f] = make_uint4(current[f].x >> 3, current[f].y >> 3, current[f].z >> 3, current[f].w >> 3);
        TRIBUTARY_UNROLL()
        for (uint32_t c = 0; c < kColumnFragments; c++) fold(parities[f][c], sums[f][c], high);
      }
    }
  }
}

/**
 * Gathers the bits of bytes from the lanes, and writes the warp's outputs. A lane begins with bit lane / 4 of both
 * columns of all fragments. Each of three exchanges doubles the bits and halves the columns of a lane.
 */
TRIBUTARY_DEVICE void storeOutputs(const Parities& parities, uint8_t* tile, uint32_t stride, uint32_t firstOutput,
                                   uint32_t outputCount) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t bitPlace = lane / 4 & 6;
  uint32_t bits[4 * kColumnFragments];
  TRIBUTARY_UNROLL()
  for (uint32_t i = 0; i < 32; i++) {
    const uint32_t parity = parities[i / 8][i % 8];
    bits[i] = ((parity & kLowBits) | (parity >> 6 & 0x02020202)) << bitPlace;
  }
  TRIBUTARY_UNROLL()
  for (uint32_t count = 16, mask = 16; count >= 8; count /= 2, mask /= 2) {
    const bool upper = (lane & mask) != 0;
    TRIBUTARY_UNROLL()
    for (uint32_t i = 0; i < 16; i++) {
      if (i >= count) break;
      const uint32_t own = upper ? bits[i + count] : bits[i];
      const uint32_t other = upper ? bits[i] : bits[i + count];
      bits[i] = own | shuffleXor(other, static_cast<int>(mask));
    }
  }
  const uint32_t odd = lane >> 2 & 1;
  TRIBUTARY_UNROLL()
  for (uint32_t i = 0; i < 8; i++) {
    const uint32_t got = shuffleXor(bits[i], 4);
    bits[i] = odd ? (got >> 1 & 0x55555555) | (bits[i] & 0xAAAAAAAA) : (bits[i] & 0x55555555) | (got << 1 & 0xAAAAAAAA);
  }
  const uint32_t output = firstOutput + lane / 8 * 2;
  uint8_t* out = tile + uint64_t{output} * stride + odd * 64 + lane % 4 * 16;
  if (output < outputCount) {
    *reinterpret_cast<uint4*>(out) =
        make_uint4(bytePermute(bits[0], bits[1], 0x5410), bytePermute(bits[2], bits[3], 0x5410),
                   bytePermute(bits[4], bits[5], 0x5410), bytePermute(bits[6], bits[7], 0x5410));
  }
  if (output + 1 < outputCount) {
    *reinterpret_cast<uint4*>(out + stride) =
        make_uint4(bytePermute(bits[0], bits[1], 0x7632), bytePermute(bits[2], bits[3], 0x7632),
                   bytePermute(bits[4], bits[5], 0x7632), bytePermute(bits[6], bits[7], 0x7632));
  }
}

/**
 * `segmentSources` is a multiple of kWordSources; the block has kTensorSourceBytes of shared memory for each of them.
 * Pass 65536 as `high`. (A multiplication by a number that the compiler does not know runs beside the XORs.)
 */
TRIBUTARY_KERNEL(128, 2) productTensor(const Job* jobs, uint32_t jobCount, uint32_t segmentSources, uint32_t high) {
  const Job& job = findJob(jobs, jobCount, &Job::firstBlockOfProduct);
  const uint32_t block = blockIdx.x - job.firstBlockOfProduct;
  const uint32_t part = block % job.parts;
  const uint64_t column = block / job.parts * kTileBytes;
  const uint32_t sourceCount = job.sourceCount;
  const uint32_t outputCount = job.outputCount;
  const uint32_t stride = job.stride;
  const uint32_t sets = wordSets(sourceCount);
  uint2* staged = reinterpret_cast<uint2*>(sharedMemory());
  for (uint32_t first = part * kTensorOutputs; first < outputCount; first += job.parts * kTensorOutputs) {
    const uint32_t firstOutput = first + threadIdx.x / 32 * kWarpOutputs;
    const bool works = firstOutput < outputCount;
    Parities parities = {};
    for (uint32_t source = 0; source < sourceCount; source += segmentSources) {
      const uint32_t left = sourceCount - source;
      const uint32_t count = left < segmentSources ? left : segmentSources;
      if (sourceCount > segmentSources || first == part * kTensorOutputs) {
        waitForBlock();
        stageSources(staged, at<const uint8_t>(job.sources) + uint64_t{source} * stride + column, stride, count);
        waitForBlock();
      }
      const uint64_t set = uint64_t{firstOutput / kWarpOutputs} * sets + source / kWordSources;
      if (works) multiplySegment(parities, at<const uint4>(job.words) + set * 128, staged, count, high);
    }
    if (works) storeOutputs(parities, at<uint8_t>(job.outputs) + column, stride, firstOutput, outputCount);
  }
}

/*
 * productTables. A block of 16 warps multiplies kTableOutputs outputs by a tile of kWideTileBytes columns. For four
 * sources at a time it makes tables of their multiples by the 16 low and the 16 high nibbles: [source][half][nibble]
 * [lane], 16 bytes each. Two such stages alternate.
 */
constexpr uint32_t kStageSources = 4;
constexpr uint32_t kStageEntries = kStageSources * 2 * 16 * 32;

/** A thread makes eight entries of one table. */
TRIBUTARY_DEVICE void makeTables(uint4* tables, const Job& job, uint64_t column, uint32_t firstSource) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t warp = threadIdx.x / 32;
  const uint32_t source = firstSource + warp / 4;
  uint4 x = make_uint4(0, 0, 0, 0);
  if (source < job.sourceCount && column < job.stride) {
    x = *at<const uint4>(job.sources + uint64_t{source} * job.stride + column);
  }
  const uint32_t half = warp / 2 % 2;
  if (half == 1) x = doubled(doubled(doubled(doubled(x))));
  const uint4 x2 = doubled(x);
  const uint4 x4 = doubled(x2);
  uint4 entry = make_uint4(0, 0, 0, 0);
  if (warp % 2 == 1) entry = doubled(x4);
  uint4* table = tables + ((warp / 4 * 2 + half) * 16 + warp % 2 * 8) * 32 + lane;
  TRIBUTARY_UNROLL()
  for (uint32_t i = 0; i < 8; i++) {
    const uint32_t gray = i ^ i >> 1;
    table[gray * 32] = entry;
    addTo(entry, (i & 1) == 0 ? x : (i & 2) == 0 ? x2 : x4);
  }
}

TRIBUTARY_KERNEL(512, 1) productTables(const Job* jobs, uint32_t jobCount) {
  const Job& job = findJob(jobs, jobCount, &Job::firstBlockOfProduct);
  const uint32_t block = blockIdx.x - job.firstBlockOfProduct;
  const uint32_t lane = threadIdx.x % 32;
  const uint64_t column = uint64_t{block / job.parts} * kWideTileBytes + lane * 16;
  const uint32_t firstOutput = block % job.parts * kTableOutputs + threadIdx.x / 32 * 8;
  uint4* tables = sharedMemory();
  uint4 sums[8] = {};
  makeTables(tables, job, column, 0);
  waitForBlock();
  for (uint32_t source = 0; source < job.sourceCount; source += kStageSources) {
    const uint4* stage = tables + source / kStageSources % 2 * kStageEntries + lane;
    if (source + kStageSources < job.sourceCount) {
      makeTables(tables + (source / kStageSources + 1) % 2 * kStageEntries, job, column, source + kStageSources);
    }
    TRIBUTARY_UNROLL()
    for (uint32_t o = 0; o < 8; o++) {
      if (firstOutput + o >= job.outputCount) break;
      const uint32_t factors =
          *at<const uint32_t>(job.coefficients + uint64_t{firstOutput + o} * job.coefficientStride + source);
      TRIBUTARY_UNROLL()
      for (uint32_t s = 0; s < kStageSources; s++) {
        addTo(sums[o], stage[(s * 2 * 16 + (factors >> 8 * s & 15)) * 32]);
        addTo(sums[o], stage[((s * 2 + 1) * 16 + (factors >> (8 * s + 4) & 15)) * 32]);
      }
    }
    waitForBlock();
  }
  TRIBUTARY_UNROLL()
  for (uint32_t o = 0; o < 8; o++) {
    if (firstOutput + o >= job.outputCount || column >= job.stride) break;
    *at<uint4>(job.outputs + uint64_t{firstOutput + o} * job.stride + column) = sums[o];
  }
}

/*
 * productMasks. A block of 4 warps multiplies kMaskOutputs outputs by a tile of kWideTileBytes columns; a warp has two
 * of the outputs. For each output it keeps eight sums: sum j has the sources whose coefficient has bit j. Shared memory
 * holds a mask for each bit of 16 coefficients of each output.
 */
constexpr uint32_t kMaskSources = 16;

TRIBUTARY_KERNEL(128, 4) productMasks(const Job* jobs, uint32_t jobCount) {
  const Job& job = findJob(jobs, jobCount, &Job::firstBlockOfProduct);
  const uint32_t block = blockIdx.x - job.firstBlockOfProduct;
  const uint32_t warp = threadIdx.x / 32;
  uint64_t column = uint64_t{block / job.parts} * kWideTileBytes + threadIdx.x % 32 * 16;
  const bool stores = column < job.stride;
  if (!stores) column = 0;
  const uint32_t blockOutput = block % job.parts * kMaskOutputs;
  uint32_t* masks = reinterpret_cast<uint32_t*>(sharedMemory());
  uint4 sums[2][8] = {};
  for (uint32_t first = 0; first < job.sourceCount; first += kMaskSources) {
    waitForBlock();
    for (uint32_t item = threadIdx.x; item < kMaskOutputs * kMaskSources; item += 128) {
      const uint32_t output = blockOutput + item / kMaskSources;
      const uint32_t source = first + item % kMaskSources;
      uint32_t factor = 0;
      if (output < job.outputCount && source < job.sourceCount) {
        factor = at<const uint8_t>(job.coefficients)[uint64_t{output} * job.coefficientStride + source];
      }
      for (uint32_t j = 0; j < 8; j++) masks[item * 8 + j] = 0 - (factor >> j & 1);
    }
    waitForBlock();
    const uint32_t left = job.sourceCount - first;
    const uint32_t count = left < kMaskSources ? left : kMaskSources;
    for (uint32_t s = 0; s < count; s++) {
      const uint4 x = *at<const uint4>(job.sources + uint64_t{first + s} * job.stride + column);
      TRIBUTARY_UNROLL()
      for (uint32_t o = 0; o < 2; o++) {
        const uint4* own = sharedMemory() + ((warp * 2 + o) * kMaskSources + s) * 2;
        const uint4 halves[2] = {own[0], own[1]};
        TRIBUTARY_UNROLL()
        for (uint32_t j = 0; j < 8; j++) {
          const uint4 four = halves[j / 4];
          const uint32_t mask = j % 4 == 0 ? four.x : j % 4 == 1 ? four.y : j % 4 == 2 ? four.z : four.w;
          addTo(sums[o][j], make_uint4(x.x & mask, x.y & mask, x.z & mask, x.w & mask));
        }
      }
    }
  }
  TRIBUTARY_UNROLL()
  for (uint32_t o = 0; o < 2; o++) {
    const uint32_t output = blockOutput + warp * 2 + o;
    uint4 result = sums[o][7];
    TRIBUTARY_UNROLL()
    for (uint32_t j = 0; j < 7; j++) {
      result = doubled(result);
      addTo(result, sums[o][6 - j]);
    }
    if (stores && output < job.outputCount) {
      *at<uint4>(job.outputs + uint64_t{output} * job.stride + column) = result;
    }
  }
}

}  // namespace tributary::gpu
