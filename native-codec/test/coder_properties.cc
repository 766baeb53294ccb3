/** Properties of the coders: encoder, decoder and recoder on random generations, repair on random blocks. */
#include <cstring>
#include <utility>

#include "gf256.h"
#include "properties.h"

namespace tributary::test {
namespace {

/** The rank of a matrix over GF(2^8), by plain elimination. */
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
  /** Returns true if the unit vector of `index` is in the span of the rows. */
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

Generation anyGeneration(Random& random) {
  const size_t symbolCount = random.size(random.below(4) == 0 ? kSymbolCountMax : 40);
  const size_t most = symbolCount > 64 ? 200 : random.below(20) == 0 ? 9000 : 1500;
  return Generation(random, symbolCount, random.size(most));
}

/** A dense, sparse, unit or zero vector. A decoder must accept more than the vectors of our encoder. */
Block anyCoefficients(Random& random, size_t symbolCount) {
  Block coefficients(random, symbolCount);
  const size_t kind = random.below(8);
  if (kind < 4) return coefficients;
  memset(coefficients.bytes.get(), 0, symbolCount);
  const size_t entries = kind == 7 ? 0 : kind == 6 ? 1 : 1 + random.below(4);
  for (size_t i = 0; i < entries; i++) coefficients[random.below(symbolCount)] = static_cast<uint8_t>(random.next());
  return coefficients;
}

/** Adds one symbol of a random kind to `collector` and to the naive rank. Both must agree. */
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

}  // namespace

Block Generation::coded(const Block& coefficients) const {
  Block out(symbolBytes);
  memset(out.bytes.get(), 0, symbolBytes);
  for (size_t s = 0; s < symbolCount; s++) {
    if (coefficients[s] == 0) continue;
    for (size_t i = 0; i < symbolBytes; i++) out[i] ^= gf256::multiply(source[s * symbolBytes + i], coefficients[s]);
  }
  return out;
}

Block Generation::symbol(size_t index) const {
  Block out(symbolBytes);
  memcpy(out.bytes.get(), source.bytes.get() + index * symbolBytes, symbolBytes);
  return out;
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

/** Source symbols arrive in random order. Coded symbols and late source symbols repair the missing ones. */
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

}  // namespace tributary::test
