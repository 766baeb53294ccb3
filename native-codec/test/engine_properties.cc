/** Properties of the engines: their products and sums equal those of the reference engine. */
#include <cmath>
#include <cstring>

#include "engine.h"
#include "properties.h"

namespace tributary::test {
namespace {

/** A source row at any alignment. It has its bytes and the padding that engines may read, and no byte more. */
Block paddedRow(Random& random, size_t bytes) {
  return Block(random, (bytes + kRowPadding - 1) / kRowPadding * kRowPadding);
}

/**
 * Rows for outputs. Exact rows end with their heap block. Other rows start at any alignment and have guard bytes on
 * both sides, which also catch masked stores, which AddressSanitizer does not check.
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

}  // namespace

void engineMatchesReference(Random& random) {
  const Engine& engine = anyEngine(random);
  const bool isLarge = random.below(10) == 0;  // Large products use engine_subfield.h.
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

/** Random square systems are singular at the rate 1 - product of (1 - 256^-i), within 5 sigma. */
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

}  // namespace tributary::test
