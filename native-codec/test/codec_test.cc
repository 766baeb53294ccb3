/**
 * Tests the C++ core on random cases, under AddressSanitizer and UBSan. Each case checks one property, which its seed
 * chooses. Every buffer that the core gets is a heap block of exactly its size, so that the sanitizer sees one byte too
 * many. test.mjs sets the flags and runs this program.
 *
 *     codec_test                 3,000 cases
 *     codec_test SEED            one case
 *     codec_test SEED CASES      that many cases from SEED on
 */
#include <cstdio>
#include <cstdlib>

#include "properties.h"

namespace {

using namespace tributary::test;

struct Property {
  const char* name;
  void (*check)(Random&);
};

const Property kProperties[] = {
    {"engine: gives the products of the reference engine", engineMatchesReference},
    {"engine: gives the sums of rows of the reference engine", sumOfRowsMatchesReference},
    {"encoder: codes by the definition", encoderMatchesDefinition},
    {"decoder: reports the rank and the determined symbols, and recovers the source", decoderRecovers},
    {"recoder: payloads match their vectors, and the vectors stay in the span", recoderStaysTrue},
    {"repair: recovers a block from few coded symbols", repairRecovers},
    {"repair: misuse and lack of memory are reported", repairMisuseIsReported},
    {"misuse: is reported by the name of the argument", misuseIsReported},
    {"memory: a lack of it is reported", outOfMemoryIsReported},
};
constexpr size_t kPropertyCount = sizeof(kProperties) / sizeof(kProperties[0]);

const Property kSingularShare = {"elimination: finds systems singular at the rate of theory", singularShareIsRight};

/** The property that case `seed` checks. Engines get the most cases, because they have the most edges. */
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

/** The state of the run, so that the program can report it if a sanitizer ends the process. */
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
