/** Properties of failing calls: misuse and a lack of memory give a Status that says what is wrong. */
#include "properties.h"

namespace tributary::test {
namespace {

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

}  // namespace

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

void outOfMemoryIsReported(Random& random) {
  failsWithoutMemory<Encoder>(random, 1);
  failsWithoutMemory<Decoder>(random, 3);
  failsWithoutMemory<Recoder>(random, 3);
  failsWithoutMemory<RepairEncoder>(random, 2);
  failsWithoutMemory<RepairDecoder>(random, 3);
}

}  // namespace tributary::test
