/**
 * The properties that codec_test.cc checks, and what they share: expectations, engines, and coded symbols made by the
 * definition. Each property takes random numbers and throws a Failure if it does not hold.
 */
#ifndef TRIBUTARY_TEST_PROPERTIES_H_
#define TRIBUTARY_TEST_PROPERTIES_H_

#include <string>
#include <vector>

#include "support.h"
#include "tributary/codec.h"

namespace tributary::test {

/** A property does not hold. */
struct Failure {
  std::string what;
};

inline void expect(bool holds, const char* what) {
  if (!holds) throw Failure{what};
}

inline void expectOk(const Status& status) {
  if (!status.ok()) throw Failure{std::string("unexpected status: ") + status.what};
}

inline void expectMisuse(const Status& status, const char* what) {
  expect(status.code == Status::Code::kMisuse && strcmp(status.what, what) == 0, what);
}

/** One of the engines that this processor runs. */
inline const Engine& anyEngine(Random& random) {
  const auto engines = availableEngines();
  return *engines[random.below(engines.size())];
}

/** A generation with random source symbols. Its coded symbols follow the definition, one byte at a time. */
struct Generation {
  Generation(Random& random, size_t symbolCount, size_t symbolBytes)
      : symbolCount(symbolCount), symbolBytes(symbolBytes), source(random, symbolCount * symbolBytes) {}

  Block coded(const Block& coefficients) const;
  Block symbol(size_t index) const;

  size_t symbolCount;
  size_t symbolBytes;
  Block source;
};

// engine_properties.cc
void engineMatchesReference(Random& random);
void sumOfRowsMatchesReference(Random& random);
void singularShareIsRight(Random& random);

// coder_properties.cc
void encoderMatchesDefinition(Random& random);
void decoderRecovers(Random& random);
void recoderStaysTrue(Random& random);
void repairRecovers(Random& random);

// misuse_properties.cc
void misuseIsReported(Random& random);
void repairMisuseIsReported(Random& random);
void outOfMemoryIsReported(Random& random);

}  // namespace tributary::test

#endif  // TRIBUTARY_TEST_PROPERTIES_H_
