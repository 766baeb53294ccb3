/**
 * Fuzzes the C++ core: runs random sequences of operations on the coders of one engine and of the reference engine.
 * Both must give the same status and the same bytes, for misuse and failing allocations too. Payloads are random, so
 * that decoders also see symbols that no encoder made.
 *
 *     codec_fuzz SEED OPERATIONS     runs sequences from SEED on, until so many operations are done
 *     codec_fuzz SEED 1              replays one sequence
 */
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "support.h"
#include "tributary/codec.h"

namespace {

using namespace tributary;
using namespace tributary::test;

struct Failure {
  std::string what;
};

/** The current operation, so that a failure can name it. */
struct Progress {
  uint64_t seed = 0;
  uint64_t operations = 0;
  const char* operation = "";
  const char* engine = "";
} progress;

/** Starts an operation. A failure prints its name. */
void operation(const char* name) {
  progress.operations++;
  progress.operation = name;
}

void expectSame(bool same, const char* what) {
  if (!same) throw Failure{what};
}

/** Returns true if both calls succeeded. Throws a Failure if their outcomes differ. */
bool sameStatus(const Status& got, const Status& wanted) {
  expectSame(got.code == wanted.code && std::string(got.what) == wanted.what && got.got == wanted.got &&
                 got.limit == wanted.limit,
             "status");
  return got.ok();
}

/** Two coders of one shape: `got` on the tested engine, `wanted` on the reference engine. */
template <class Coder>
struct Pair {
  Coder got, wanted;

  /**
   * Initializes both coders. A quarter of the cases first try with every allocation failing in turn. Returns false if
   * the coders refuse the shape.
   */
  bool initialize(Random& random, const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes) {
    const bool fails = random.below(4) == 0;
    for (int allowed = 0; fails; allowed++) {
      operation("initialize without memory");
      Coder starved;
      allocationsLeft = allowed;
      const Status status = starved.initialize(engine, symbolCount, symbolBytes);
      allocationsLeft = -1;
      if (status.code != Status::Code::kOutOfMemory) break;
      expectSame(status.got > 0, "bytes that were not available");
    }
    operation("initialize");
    const Status status = got.initialize(engine, symbolCount, symbolBytes);
    return sameStatus(status, wanted.initialize(*findEngine("reference"), symbolCount, symbolBytes));
  }
};

/** Usually `value`. Sometimes 0, one more or one less. */
size_t nearly(Random& random, size_t value) {
  const size_t draw = random.below(64);
  return draw == 0 ? 0 : draw == 1 ? value + 1 : draw == 2 && value > 0 ? value - 1 : value;
}

struct Shape {
  uint32_t symbolCount, symbolBytes;
};

Shape anyShape(Random& random) {
  const bool large = random.below(40) == 0;
  const size_t symbolCount = random.below(200) == 0 ? random.below(260) : random.size(large ? 80 : 14);
  const size_t symbolBytes = random.below(200) == 0 ? 0 : random.size(large ? 1500 : 90);
  return {static_cast<uint32_t>(symbolCount), static_cast<uint32_t>(symbolBytes)};
}

/** A dense, a sparse or an empty vector. */
Block anyVector(Random& random, size_t size) {
  Block vector(random, size);
  if (random.below(2) == 0) return vector;
  memset(vector.bytes.get(), 0, size);
  for (size_t i = random.below(3); i > 0 && size > 0; i--)
    vector[random.below(size)] = static_cast<uint8_t>(random.next());
  return vector;
}

std::vector<uint32_t> anySeeds(Random& random) {
  std::vector<uint32_t> seeds(random.below(32) == 0 ? 0 : random.size(random.below(8) == 0 ? 40 : 6));
  for (uint32_t& seed : seeds) seed = static_cast<uint32_t>(random.next());
  return seeds;
}

template <class Coder>
void encodeAny(Random& random, Pair<Coder>& pair, Shape shape) {
  if (random.below(3) == 0) {
    operation("setSymbols");
    const uint32_t first = static_cast<uint32_t>(nearly(random, random.below(shape.symbolCount)));
    const Block bytes(random, random.below(2 * shape.symbolBytes + 1));
    sameStatus(pair.got.setSymbols(first, bytes), pair.wanted.setSymbols(first, bytes));
    return;
  }
  operation("encodeSeeds");
  const std::vector<uint32_t> seeds = anySeeds(random);
  Block got(nearly(random, seeds.size() * shape.symbolBytes)), wanted(got.size);
  sameStatus(pair.got.encodeSeeds(seeds, got), pair.wanted.encodeSeeds(seeds, wanted));
  expectSame(got == wanted, "coded symbols");
}

void encodeVector(Random& random, Pair<Encoder>& pair, Shape shape) {
  operation("encodeVector");
  const Block vector = anyVector(random, nearly(random, shape.symbolCount));
  Block got(nearly(random, shape.symbolBytes)), wanted(got.size);
  sameStatus(pair.got.encodeVector(vector, got), pair.wanted.encodeVector(vector, wanted));
  expectSame(got == wanted, "coded symbol");
}

template <class Coder>
void addAny(Random& random, Pair<Coder>& pair, Shape shape) {
  const Block payload(random, nearly(random, shape.symbolBytes));
  bool got = false, wanted = false;
  const uint32_t draw = static_cast<uint32_t>(random.next());
  switch (random.below(3)) {
    case 0: {
      operation("addSystematic");
      const uint32_t index = static_cast<uint32_t>(nearly(random, draw % shape.symbolCount));
      sameStatus(pair.got.addSystematic(index, payload, got), pair.wanted.addSystematic(index, payload, wanted));
      break;
    }
    case 1:
      operation("addSeeded");
      sameStatus(pair.got.addSeeded(draw, payload, got), pair.wanted.addSeeded(draw, payload, wanted));
      break;
    default: {
      operation("addVector");
      const Block vector = anyVector(random, nearly(random, shape.symbolCount));
      sameStatus(pair.got.addVector(vector, payload, got), pair.wanted.addVector(vector, payload, wanted));
    }
  }
  expectSame(got == wanted, "innovative");
  expectSame(pair.got.rank() == pair.wanted.rank(), "rank");
}

template <class Coder>
void readAny(Random& random, Pair<Coder>& pair, Shape shape) {
  operation("isDecoded");
  const uint32_t index = static_cast<uint32_t>(nearly(random, random.below(shape.symbolCount)));
  bool got = false, wanted = false;
  sameStatus(pair.got.isDecoded(index, got), pair.wanted.isDecoded(index, wanted));
  expectSame(got == wanted, "isDecoded");
  operation("read");
  const bool whole = random.below(3) == 0;
  const uint32_t first = whole ? 0 : index;
  const uint32_t count = whole ? shape.symbolCount : static_cast<uint32_t>(nearly(random, 1));
  Block gotBytes(nearly(random, size_t{count} * shape.symbolBytes)), wantedBytes(gotBytes.size);
  sameStatus(pair.got.read(first, count, gotBytes), pair.wanted.read(first, count, wantedBytes));
  expectSame(gotBytes == wantedBytes, "symbols");
}

void recode(Random& random, Pair<Recoder>& pair, Shape shape) {
  operation("recode");
  const uint32_t seed = static_cast<uint32_t>(random.next());
  Block vector(nearly(random, shape.symbolCount)), payload(nearly(random, shape.symbolBytes));
  Block wantedVector(vector.size), wantedPayload(payload.size);
  sameStatus(pair.got.recode(seed, vector, payload), pair.wanted.recode(seed, wantedVector, wantedPayload));
  expectSame(vector == wantedVector && payload == wantedPayload, "recoded symbol");
}

void repairAny(Random& random, Pair<RepairDecoder>& pair, Shape shape) {
  const Block payload(random, nearly(random, shape.symbolBytes));
  bool got = false, wanted = false;
  const uint32_t draw = static_cast<uint32_t>(random.next());
  if (random.below(4) == 0) {
    operation("addSeeded to repair");
    sameStatus(pair.got.addSeeded(draw, payload, got), pair.wanted.addSeeded(draw, payload, wanted));
  } else {
    operation("addSource");
    const uint32_t index = static_cast<uint32_t>(nearly(random, draw % shape.symbolCount));
    sameStatus(pair.got.addSource(index, payload, got), pair.wanted.addSource(index, payload, wanted));
  }
  expectSame(got == wanted, "innovative");
  expectSame(pair.got.missingCount() == pair.wanted.missingCount(), "missingCount");
}

/** Runs a sequence on coders of one kind. Large shapes get long sequences, so that decoders often complete. */
template <class Coder, class Step>
void sequence(Random& random, const Engine& engine, Shape shape, Step step) {
  Pair<Coder> pair;
  if (!pair.initialize(random, engine, shape.symbolCount, shape.symbolBytes)) return;
  const size_t steps = 4 + random.below(4 * shape.symbolCount + 8);
  for (size_t i = 0; i < steps; i++) step(pair);
}

void runSequence(Random& random) {
  const auto engines = availableEngines();
  const Engine& engine = *engines[random.below(engines.size() - 1)];
  progress.engine = engineName(engine);
  const Shape shape = anyShape(random);
  switch (random.below(5)) {
    case 0:
      return sequence<Encoder>(random, engine, shape, [&](Pair<Encoder>& pair) {
        random.below(4) == 0 ? encodeVector(random, pair, shape) : encodeAny(random, pair, shape);
      });
    case 1:
      return sequence<Recoder>(random, engine, shape, [&](Pair<Recoder>& pair) {
        random.below(2) == 0 ? recode(random, pair, shape) : addAny(random, pair, shape);
      });
    case 2:
      return sequence<RepairDecoder>(random, engine, shape, [&](Pair<RepairDecoder>& pair) {
        random.below(4) == 0 ? readAny(random, pair, shape) : repairAny(random, pair, shape);
      });
    case 3:
      return sequence<RepairEncoder>(random, engine, shape,
                                     [&](Pair<RepairEncoder>& pair) { encodeAny(random, pair, shape); });
    default:
      return sequence<Decoder>(random, engine, shape, [&](Pair<Decoder>& pair) {
        random.below(4) == 0 ? readAny(random, pair, shape) : addAny(random, pair, shape);
      });
  }
}

void reportFailure(const char* what) {
  const auto seed = static_cast<unsigned long long>(progress.seed);
  fprintf(stderr, "FAILED engine %s, %s: %s\n  replay: npm run fuzz -- codec --seed %llu --ops 1\n", progress.engine,
          progress.operation, what, seed);
}

void reportDeath() { reportFailure("ended by a sanitizer"); }

}  // namespace

int main(int argc, char** argv) {
  progress.seed = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1;
  const double operations = argc > 2 ? strtod(argv[2], nullptr) : 1e6;
  onDeath(reportDeath);
  const uint64_t firstSeed = progress.seed;
  try {
    for (; static_cast<double>(progress.operations) < operations; progress.seed++) {
      Random random(progress.seed);
      runSequence(random);
    }
  } catch (const Failure& failure) {
    reportFailure(failure.what.c_str());
    return 1;
  }
  printf("fuzz: %llu operations equal on every engine and the reference (seeds %llu to %llu)\n",
         static_cast<unsigned long long>(progress.operations), static_cast<unsigned long long>(firstSeed),
         static_cast<unsigned long long>(progress.seed - 1));
  return 0;
}
