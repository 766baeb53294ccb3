/**
 * Random operations on the C++ core, judged by a second, naive implementation, under AddressSanitizer and UBSan.
 * Every buffer handed to the core is a heap block of exactly its size, so that one byte too many is caught.
 * Run by test.mjs, which sets the flags. Arguments: [seed [cases]]; a seed given runs that case alone.
 */
#include "tributary/codec.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "engine.h"
#include "gf256.h"
#include "support.h"

namespace {

using namespace tributary;
using namespace tributary::test;

struct Failure {
  std::string what;
};

void expect(bool holds, const char* what) {
  if (!holds) throw Failure{what};
}

void expectOk(const Status& status) {
  if (!status.ok()) throw Failure{std::string("unexpected status: ") + status.what};
}

void expectMisuse(const Status& status, const char* what) {
  expect(status.code == Status::Code::kMisuse && strcmp(status.what, what) == 0, what);
}

const Engine& anyEngine(Random& random) {
  const auto engines = availableEngines();
  return *engines[random.below(engines.size())];
}

/** Rank of a matrix over the field, the slow way. */
class NaiveRank {
 public:
  explicit NaiveRank(size_t columns) : columns_(columns) {}
  bool add(const Block& vector) {
    std::vector<uint8_t> row(vector.bytes.get(), vector.bytes.get() + columns_);
    for (const auto& held : rows_) {
      size_t pivot = 0;
      while (held[pivot] == 0) pivot++;
      const uint8_t factor = gf256::multiply(row[pivot], gf256::kInverses.of[held[pivot]]);
      for (size_t i = 0; i < columns_; i++) row[i] ^= gf256::multiply(held[i], factor);
    }
    for (uint8_t entry : row) {
      if (entry != 0) {
        rows_.push_back(row);
        return true;
      }
    }
    return false;
  }
  size_t rank() const { return rows_.size(); }
  /** Whether the unit vector of `index` lies in the span. */
  bool spans(size_t index) const {
    Block unit(columns_);
    memset(unit.bytes.get(), 0, columns_);
    unit[index] = 1;
    return !NaiveRank(*this).add(unit);
  }

 private:
  size_t columns_;
  std::vector<std::vector<uint8_t>> rows_;
};

/** A generation with its source, and coded symbols computed by the definition. */
struct Generation {
  Generation(Random& random, size_t symbolCount, size_t symbolBytes)
      : symbolCount(symbolCount), symbolBytes(symbolBytes), source(random, symbolCount * symbolBytes) {}

  Block coded(const Block& coefficients) const {
    Block out(symbolBytes);
    memset(out.bytes.get(), 0, symbolBytes);
    for (size_t s = 0; s < symbolCount; s++) {
      if (coefficients[s] == 0) continue;
      for (size_t i = 0; i < symbolBytes; i++) out[i] ^= gf256::multiply(source[s * symbolBytes + i], coefficients[s]);
    }
    return out;
  }
  Block symbol(size_t index) const {
    Block out(symbolBytes);
    memcpy(out.bytes.get(), source.bytes.get() + index * symbolBytes, symbolBytes);
    return out;
  }

  size_t symbolCount;
  size_t symbolBytes;
  Block source;
};

Generation anyGeneration(Random& random) {
  const size_t symbolCount = random.size(random.below(4) == 0 ? kSymbolCountMax : 40);
  const size_t most = symbolCount > 64 ? 200 : random.below(20) == 0 ? 9000 : 1500;
  return Generation(random, symbolCount, random.size(most));
}

/** Dense, sparse, a unit or nothing at all: what arrives is not only what our encoder makes. */
Block anyCoefficients(Random& random, size_t symbolCount) {
  Block coefficients(random, symbolCount);
  const size_t kind = random.below(8);
  if (kind < 4) return coefficients;
  memset(coefficients.bytes.get(), 0, symbolCount);
  const size_t entries = kind == 7 ? 0 : kind == 6 ? 1 : 1 + random.below(4);
  for (size_t i = 0; i < entries; i++) coefficients[random.below(symbolCount)] = static_cast<uint8_t>(random.next());
  return coefficients;
}

/** A source row as the engines may read it: its bytes and the padding, and not one more, at any alignment. */
Block paddedRow(Random& random, size_t bytes) {
  return Block(random, (bytes + kRowPadding - 1) / kRowPadding * kRowPadding);
}

/**
 * Rows to write to. Exact ones end where their heap block ends; the others start at any alignment and have guards,
 * which also show what AddressSanitizer does not look at: masked stores.
 */
class OutputRows {
 public:
  OutputRows(Random& random, size_t count, size_t bytes, bool exact)
      : bytes_(bytes), before_(exact ? 0 : random.below(64)), after_(exact ? 0 : 64) {
    for (size_t i = 0; i < count; i++) {
      blocks_.emplace_back(before_ + bytes + after_);
      pointers_.push_back(blocks_[i].bytes.get() + before_);
    }
  }
  uint8_t* const* pointers() const { return pointers_.data(); }
  bool guardsHold() const {
    for (const Block& block : blocks_) {
      for (size_t i = 0; i < block.size; i++) {
        if ((i < before_ || i >= before_ + bytes_) && block[i] != 0xA5) return false;
      }
    }
    return true;
  }

 private:
  size_t bytes_, before_, after_;
  std::vector<Block> blocks_;
  std::vector<uint8_t*> pointers_;
};

void engineMatchesReference(Random& random) {
  const Engine& engine = anyEngine(random);
  const bool isLarge = random.below(10) == 0;  // engine_subfield.h
  const size_t outputCount = isLarge ? 1 + random.below(140) : random.size(12);
  const size_t sourceCount = isLarge ? 1 + random.below(140) : random.below(10) == 0 ? 0 : random.size(40);
  const size_t bytes = isLarge ? 1000 + random.below(400) : random.size(2100);
  const size_t stride = sourceCount + random.below(3);
  const Block coefficients(random, outputCount * stride + 1);
  std::vector<Block> sources;
  std::vector<const uint8_t*> sourceRows;
  for (size_t s = 0; s < sourceCount; s++) sources.push_back(paddedRow(random, bytes));
  for (const Block& source : sources) sourceRows.push_back(source.bytes.get());
  const OutputRows expected(random, outputCount, bytes, true);
  const OutputRows got(random, outputCount, bytes, random.below(2) == 0);
  const OutputRows apart(random, outputCount, bytes, random.below(2) == 0);
  for (size_t o = 0; o < outputCount; o++) {
    for (size_t i = 0; i < bytes; i++) expected.pointers()[o][i] = static_cast<uint8_t>(random.next());
    memcpy(got.pointers()[o], expected.pointers()[o], bytes);
    memcpy(apart.pointers()[o], expected.pointers()[o], bytes);
  }
  const size_t addends = random.below(3);
  Product product = {expected.pointers(),
                     outputCount,
                     sourceRows.data(),
                     sourceCount,
                     coefficients.bytes.get(),
                     stride,
                     bytes,
                     nullptr,
                     false};
  if (addends != 0) product.addends = expected.pointers();
  findEngine("reference")->multiply(product);
  product.outputs = got.pointers();
  product.fromEnd = random.below(2) == 0;
  if (addends != 0) product.addends = addends == 1 ? got.pointers() : apart.pointers();
  engine.multiply(product);
  for (size_t o = 0; o < outputCount; o++) {
    expect(memcmp(got.pointers()[o], expected.pointers()[o], bytes) == 0, engineName(engine));
  }
  expect(got.guardsHold(), "bytes beside an output were written");
}

void sumOfRowsMatchesReference(Random& random) {
  const Engine& engine = anyEngine(random);
  const size_t count = random.size(40);
  const size_t bytes = random.below(3) == 0 ? 1 + random.below(3000) : random.size(1500);
  const size_t stride = (bytes + kRowPadding - 1) / kRowPadding * kRowPadding + kRowPadding * random.below(2);
  const Block rows(random, (count - 1) * stride + (bytes + kRowPadding - 1) / kRowPadding * kRowPadding);
  const Block factors(random, count);
  Block expected(bytes);
  findEngine("reference")
      ->sumRows(expected.bytes.get(), rows.bytes.get(), stride, factors.bytes.get(), count, bytes, false);
  const OutputRows got(random, 1, bytes, random.below(2) == 0);
  uint8_t* const out = got.pointers()[0];
  engine.sumRows(out, rows.bytes.get(), stride, factors.bytes.get(), count, bytes, random.below(2) == 0);
  expect(memcmp(out, expected.bytes.get(), bytes) == 0, engineName(engine));
  expect(got.guardsHold(), "bytes beside a sum of rows were written");
}

void encoderMatchesDefinition(Random& random) {
  Generation generation = anyGeneration(random);
  Encoder encoder;
  expectOk(encoder.initialize(anyEngine(random), generation.symbolCount, generation.symbolBytes));
  size_t index = 0;
  while (index < generation.symbolCount) {
    const size_t count = 1 + random.below(generation.symbolCount - index);
    Block part(count * generation.symbolBytes);
    memcpy(part.bytes.get(), generation.source.bytes.get() + index * generation.symbolBytes, part.size);
    expectOk(encoder.setSymbols(index, part));
    index += count;
  }
  const size_t seedCount = random.size(40);
  std::vector<uint32_t> seeds(seedCount);
  for (uint32_t& seed : seeds) seed = static_cast<uint32_t>(random.next());
  Block out(seedCount * generation.symbolBytes);
  expectOk(encoder.encodeSeeds(seeds, out));
  for (size_t i = 0; i < seedCount; i++) {
    Block coefficients(generation.symbolCount);
    coefficientsOf(seeds[i], coefficients);
    const Block wanted = generation.coded(coefficients);
    expect(memcmp(out.bytes.get() + i * wanted.size, wanted.bytes.get(), wanted.size) == 0, "encodeSeeds");
  }
  const Block coefficients = anyCoefficients(random, generation.symbolCount);
  Block single(generation.symbolBytes);
  expectOk(encoder.encodeVector(coefficients, single));
  expect(single == generation.coded(coefficients), "encodeVector");
}

/** Adds one symbol of a random kind to `collector` and to the naive rank; says whether it was innovative. */
template <class Collector>
void addAny(Random& random, const Generation& generation, Collector& collector, NaiveRank& naive) {
  bool innovative = false;
  Block coefficients = anyCoefficients(random, generation.symbolCount);
  const size_t kind = random.below(3);
  if (kind == 0) {
    const size_t index = random.below(generation.symbolCount);
    memset(coefficients.bytes.get(), 0, coefficients.size);
    coefficients[index] = 1;
    expectOk(collector.addSystematic(index, generation.symbol(index), innovative));
  } else if (kind == 1) {
    const uint32_t seed = static_cast<uint32_t>(random.next());
    coefficientsOf(seed, coefficients);
    expectOk(collector.addSeeded(seed, generation.coded(coefficients), innovative));
  } else {
    expectOk(collector.addVector(coefficients, generation.coded(coefficients), innovative));
  }
  expect(innovative == naive.add(coefficients), "innovative");
  expect(collector.rank() == naive.rank(), "rank");
}

void readSome(Random& random, const Generation& generation, const Decoder& decoder, const NaiveRank& naive) {
  const size_t first = random.below(generation.symbolCount);
  const size_t count = 1 + random.below(generation.symbolCount - first);
  Block out(count * generation.symbolBytes);
  bool determined = true;
  for (size_t i = first; i < first + count; i++) determined = determined && naive.spans(i);
  const Status status = decoder.read(first, count, out);
  if (!determined) return expectMisuse(status, "notDecoded");
  expectOk(status);
  expect(memcmp(out.bytes.get(), generation.source.bytes.get() + first * generation.symbolBytes, out.size) == 0,
         "read");
}

void decoderRecovers(Random& random) {
  const Generation generation = anyGeneration(random);
  Decoder decoder;
  NaiveRank naive(generation.symbolCount);
  expectOk(decoder.initialize(anyEngine(random), generation.symbolCount, generation.symbolBytes));
  while (decoder.rank() < generation.symbolCount) {
    addAny(random, generation, decoder, naive);
    const size_t index = random.below(generation.symbolCount);
    bool decoded = false;
    if (random.below(4) != 0) continue;
    expectOk(decoder.isDecoded(index, decoded));
    expect(decoded == naive.spans(index), "isDecoded");
    readSome(random, generation, decoder, naive);
  }
  addAny(random, generation, decoder, naive);
  Block out(generation.source.size);
  expectOk(decoder.read(0, generation.symbolCount, out));
  expect(out == generation.source, "read all");
}

void recoderStaysTrue(Random& random) {
  const Generation generation = anyGeneration(random);
  Recoder recoder;
  NaiveRank naive(generation.symbolCount);
  expectOk(recoder.initialize(anyEngine(random), generation.symbolCount, generation.symbolBytes));
  const size_t steps = 1 + random.below(generation.symbolCount + 3);
  for (size_t step = 0; step < steps; step++) {
    addAny(random, generation, recoder, naive);
    Block vector(generation.symbolCount), payload(generation.symbolBytes);
    const Status status = recoder.recode(static_cast<uint32_t>(random.next()), vector, payload);
    if (recoder.rank() == 0) {
      expectMisuse(status, "rank");
      continue;
    }
    expectOk(status);
    expect(payload == generation.coded(vector), "recode");
    expect(!NaiveRank(naive).add(vector), "recoded vector lies in the span");
  }
}

/** Source symbols come in random order, some never; coded ones and stragglers repair the block. */
void repairRecovers(Random& random) {
  const size_t symbolCount = 1 + random.below(random.below(4) == 0 ? 3000 : 200);
  const Generation block(random, symbolCount, random.size(symbolCount > 300 ? 40 : 200));
  const uint32_t symbolBytes = static_cast<uint32_t>(block.symbolBytes);
  RepairEncoder encoder;
  RepairDecoder decoder;
  expectOk(encoder.initialize(anyEngine(random), static_cast<uint32_t>(symbolCount), symbolBytes));
  expectOk(decoder.initialize(anyEngine(random), static_cast<uint32_t>(symbolCount), symbolBytes));
  expectOk(encoder.setSymbols(0, block.source));
  const size_t missing = random.below(symbolCount < kRepairMissingMax ? symbolCount : 60);
  std::vector<uint32_t> order(symbolCount);
  for (size_t i = 0; i < symbolCount; i++) order[i] = static_cast<uint32_t>(i);
  for (size_t i = symbolCount; i > 1; i--) std::swap(order[i - 1], order[random.below(i)]);
  bool innovative = false;
  for (size_t i = 0; i < symbolCount - missing; i++) {
    expectOk(decoder.addSource(order[i], block.symbol(order[i]), innovative));
    expect(innovative, "a missing source symbol is innovative");
  }
  expect(decoder.missingCount() == missing, "missingCount");
  while (decoder.missingCount() > 0) {
    const uint32_t before = decoder.missingCount();
    if (random.below(6) == 0) {
      const uint32_t index = order[random.below(symbolCount)];
      expectOk(decoder.addSource(index, block.symbol(index), innovative));
    } else {
      const uint32_t seeds[] = {static_cast<uint32_t>(random.next()), 1, 2, 3, 4, 5};
      Block out(symbolBytes * (random.below(5) == 0 ? 6 : 1));
      expectOk(encoder.encodeSeeds({seeds, out.size / symbolBytes}, out));
      Block payload(symbolBytes);
      memcpy(payload.bytes.get(), out.bytes.get(), symbolBytes);
      expectOk(decoder.addSeeded(seeds[0], payload, innovative));
    }
    expect(decoder.missingCount() == before - innovative, "missingCount goes down with an innovative symbol");
    const uint32_t index = static_cast<uint32_t>(random.below(symbolCount));
    bool decoded = false;
    Block out(symbolBytes);
    expectOk(decoder.isDecoded(index, decoded));
    if (random.below(8) != 0) continue;
    const Status status = decoder.read(index, 1, out);
    if (!decoded) {
      expectMisuse(status, "notDecoded");
    } else {
      expectOk(status);
      expect(out == block.symbol(index), "early read");
    }
  }
  Block out(block.source.size);
  expectOk(decoder.read(0, static_cast<uint32_t>(symbolCount), out));
  expect(out == block.source, "read all");
}

void repairMisuseIsReported(Random& random) {
  const Engine& engine = anyEngine(random);
  RepairDecoder decoder;
  RepairEncoder encoder;
  Block payload(7), longPayload(8);
  bool flag = false;
  expectMisuse(RepairDecoder().initialize(engine, 0, 7), "symbolCount");
  expectMisuse(RepairEncoder().initialize(engine, kRepairSymbolCountMax + 1, 7), "symbolCount");
  expectOk(encoder.initialize(engine, kRepairMissingMax + 1, 7));
  expectOk(decoder.initialize(engine, kRepairMissingMax + 1, 7));
  expectMisuse(encoder.encodeSeeds({}, payload), "seeds");
  expectMisuse(encoder.setSymbols(kRepairMissingMax, longPayload), "bytes");
  expectMisuse(decoder.addSource(kRepairMissingMax + 1, payload, flag), "index");
  expectMisuse(decoder.addSource(0, longPayload, flag), "payload");
  expectMisuse(decoder.addSeeded(1, payload, flag), "missing");
  expectOk(decoder.addSource(0, payload, flag));
  expectMisuse(decoder.addSeeded(1, longPayload, flag), "payload");
  for (int allowed = 0; allowed < 3; allowed++) {
    allocationsLeft = allowed;
    const Status status = decoder.addSeeded(1, payload, flag);
    allocationsLeft = -1;
    expect(status.code == Status::Code::kOutOfMemory, "kOutOfMemory");
  }
  expectOk(decoder.addSeeded(1, payload, flag));
  expect(flag && decoder.missingCount() == kRepairMissingMax - 1, "goes on after a lack of memory");
  expectMisuse(decoder.read(1, 1, payload), "notDecoded");
  expectMisuse(decoder.read(1, kRepairMissingMax + 1, payload), "count");
}

/** Random square systems are singular as often as theory says: 1 - product of (1 - 256^-i), within 5 sigma. */
void singularShareIsRight(Random& random) {
  constexpr int kSystems = 20000;
  constexpr size_t kSize = 6;
  int singular = 0;
  for (int i = 0; i < kSystems; i++) {
    detail::Elimination elimination;
    expectOk(elimination.initialize(anyEngine(random), kSize));
    for (size_t r = 0; r < kSize; r++) elimination.add(Block(random, kSize).bytes.get());
    singular += elimination.rank() < kSize;
  }
  const double share = 1.0 / 256 + 1.0 / 65536;
  const double sigma = std::sqrt(kSystems * share * (1 - share));
  expect(std::abs(singular - kSystems * share) < 5 * sigma, "share of singular systems");
}

void misuseIsReported(Random& random) {
  const Engine& engine = anyEngine(random);
  const uint32_t symbolCount = static_cast<uint32_t>(random.size(20));
  const uint32_t symbolBytes = static_cast<uint32_t>(random.size(100));
  Encoder encoder, refused;
  Decoder decoder;
  Recoder recoder;
  expectMisuse(refused.initialize(engine, 0, 1), "symbolCount");
  expectMisuse(Encoder().initialize(engine, kSymbolCountMax + 1, 1), "symbolCount");
  expectMisuse(Decoder().initialize(engine, 1, kSymbolBytesMax + 1), "symbolBytes");
  expectOk(encoder.initialize(engine, symbolCount, symbolBytes));
  expectOk(decoder.initialize(engine, symbolCount, symbolBytes));
  expectOk(recoder.initialize(engine, symbolCount, symbolBytes));
  Block vector(symbolCount), longVector(symbolCount + 1), payload(symbolBytes), longPayload(symbolBytes + 1);
  const uint32_t one[] = {1};
  bool flag = false;
  expectMisuse(encoder.setSymbols(symbolCount, payload), "firstIndex");
  expectMisuse(encoder.setSymbols(symbolCount - 1, longPayload), "bytes");
  expectMisuse(encoder.setSymbols(0, {}), "bytes");
  expectMisuse(encoder.encodeSeeds({}, payload), "seeds");
  expectMisuse(encoder.encodeSeeds(one, longPayload), "out");
  expectMisuse(encoder.encodeVector(longVector, payload), "coefficients");
  expectMisuse(decoder.addSystematic(symbolCount, payload, flag), "index");
  expectMisuse(decoder.addVector(vector, longPayload, flag), "payload");
  expectMisuse(decoder.isDecoded(symbolCount, flag), "index");
  expectMisuse(decoder.read(0, symbolCount + 1, payload), "count");
  expectMisuse(decoder.read(0, 1, longPayload), "out");
  expectMisuse(decoder.read(0, 1, payload), "notDecoded");
  expectMisuse(recoder.recode(1, vector, payload), "rank");
  expectOk(recoder.addSystematic(0, payload, flag));
  expectMisuse(recoder.recode(1, longVector, payload), "outCoefficients");
  expectMisuse(recoder.recode(1, vector, longPayload), "outPayload");
}

template <class Coder>
void failsWithoutMemory(Random& random, int allocations) {
  for (int allowed = 0; allowed <= allocations; allowed++) {
    Coder coder;
    allocationsLeft = allowed;
    const Status status = coder.initialize(anyEngine(random), static_cast<uint32_t>(random.size(40)), 100);
    allocationsLeft = -1;
    expect(status.ok() == (allowed == allocations), "initialize with too few allocations");
    expect(status.ok() || (status.code == Status::Code::kOutOfMemory && status.got > 0), "kOutOfMemory");
  }
}

void outOfMemoryIsReported(Random& random) {
  failsWithoutMemory<Encoder>(random, 1);
  failsWithoutMemory<Decoder>(random, 3);
  failsWithoutMemory<Recoder>(random, 3);
  failsWithoutMemory<RepairEncoder>(random, 2);
  failsWithoutMemory<RepairDecoder>(random, 3);
}

struct Property {
  const char* name;
  void (*check)(Random&);
};

const Property kProperties[] = {
    {"engine: multiplies as the reference does", engineMatchesReference},
    {"engine: sums rows as the reference does", sumOfRowsMatchesReference},
    {"encoder: codes as the definition says", encoderMatchesDefinition},
    {"decoder: tells rank and determined symbols, and recovers them", decoderRecovers},
    {"recoder: payloads match their vectors, which stay in the span", recoderStaysTrue},
    {"repair: recovers a block from few coded symbols", repairRecovers},
    {"repair: misuse and lack of memory are reported", repairMisuseIsReported},
    {"misuse: is reported by name", misuseIsReported},
    {"memory: its lack is reported", outOfMemoryIsReported},
};
constexpr size_t kPropertyCount = sizeof(kProperties) / sizeof(kProperties[0]);

const Property kSingularShare = {"elimination: finds as many systems singular as theory", singularShareIsRight};

/** Case `seed` checks one property; engines get most cases, as they have the most edges. */
const Property& propertyOf(uint64_t seed) {
  if (seed % 1000 == 1) return kSingularShare;
  return kProperties[seed % 3 == 0 ? 0 : (seed / 3) % kPropertyCount];
}

bool passes(uint64_t seed) {
  Random random(seed);
  try {
    propertyOf(seed).check(random);
    return true;
  } catch (const Failure& failure) {
    fprintf(stderr, "FAILED %s: %s\n  seed %llu, replay: node native-codec/test.mjs %llu\n", propertyOf(seed).name,
            failure.what.c_str(), static_cast<unsigned long long>(seed), static_cast<unsigned long long>(seed));
    return false;
  }
}

/** Where the run stands, for when a sanitizer ends the process. */
struct Progress {
  uint64_t seed = 0;
  size_t passed = 0;
  size_t failed = 0;
} progress;

void reportDeath() {
  const auto seed = static_cast<unsigned long long>(progress.seed);
  fprintf(stderr, "FAILED %s: ended by a sanitizer\n  seed %llu, replay: node native-codec/test.mjs %llu\n",
          propertyOf(progress.seed).name, seed, seed);
  printf("%zu passed, %zu failed\n", progress.passed, progress.failed + 1);
  fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const bool single = argc == 2;
  const uint64_t first = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1;
  const uint64_t cases = argc > 2 ? strtoull(argv[2], nullptr, 10) : single ? 1 : 3000;
  onDeath(reportDeath);
  for (progress.seed = first; progress.seed < first + cases; progress.seed++) {
    (passes(progress.seed) ? progress.passed : progress.failed)++;
  }
  printf("%zu passed, %zu failed\n", progress.passed, progress.failed);
  return progress.failed == 0 ? 0 : 1;
}
