/**
 * The native contenders of `npm run bench -- codec`: the C++ core on each engine, ISA-L and a roofline. Not a benchmark
 * by itself: it measures one case for one slice of time each time it is asked, so that the driver can interleave
 * contenders. Requests on stdin, one answer a line on stdout:
 *
 *     engines                                                  -> engines gfni512 avx2 ...
 *     measure CONTENDER PATH OP SYMBOLS BYTES OUTPUTS MILLISECONDS -> seconds S | absent WHY
 *     forget                                                   -> done       (frees what earlier cases prepared)
 *
 *     native LIBISAL       LIBISAL: the shared library's file, or - for none
 *
 * Before a case is timed its result is checked: a codec that computes something else is an error, not a figure.
 */
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "isal.h"
#include "roofline.h"
#include "timing.h"
#include "tributary/codec.h"

namespace {

using bench::IsaL;
using Buffer = std::vector<uint8_t>;
/** Measures for so many seconds; answers with the median seconds of one operation. */
using Measurement = std::function<double(double)>;

/** Why a case cannot be measured here; not an error. */
struct Absent : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Case {
  std::string contender, path, op;
  uint32_t symbolCount = 0, symbolBytes = 0, outputCount = 0;
};

/** Results in flight at once in `encode-flow`, as many as lab/bench/src/codec/addon.ts keeps. */
constexpr size_t kInFlightBytes = 4u << 20;
/** Coefficient matrices that ISA-L's cases take turns with. */
constexpr size_t kMatrices = 16;

void check(const tributary::Status& status) {
  if (!status.ok())
    throw std::runtime_error(std::string(status.what) + ": got " + std::to_string(status.got) + ", limit " +
                             std::to_string(status.limit));
}

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

Buffer randomBytes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  Buffer bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() >> 13);
  return bytes;
}

const tributary::Engine& engineNamed(const std::string& name) {
  const tributary::Engine* engine = tributary::findEngine(name);
  if (engine == nullptr) throw Absent("no engine " + name + " here");
  return *engine;
}

/** How many output buffers a case takes turns with. */
size_t outputBuffers(const Case& c) {
  const size_t bytes = size_t{c.outputCount} * c.symbolBytes;
  return c.op != "encode-flow" ? 1 : std::max<size_t>(2, (kInFlightBytes + bytes / 2) / bytes);
}

/** Where the rows of a buffer start, as ISA-L takes them. */
std::vector<unsigned char*> rowsOf(Buffer& buffer, size_t count, size_t bytes) {
  std::vector<unsigned char*> rows(count);
  for (size_t i = 0; i < count; i++) rows[i] = buffer.data() + i * bytes;
  return rows;
}

/** Rows laid out as the core lays out its own (codec.h), so that a rival that takes pointers gains as much; or back to
 * back. */
class SourceRows {
 public:
  SourceRows(const Buffer& bytes, size_t rowCount, size_t rowBytes, bool packed = false) {
    const size_t padded = (rowBytes + 63) / 64 * 64;
    const size_t stride = packed ? rowBytes : padded % 4096 == 0 ? padded + 64 : padded;
    memory_.reset(static_cast<unsigned char*>(std::aligned_alloc(64, (rowCount * stride + 63) / 64 * 64)));
    require(memory_ != nullptr, "out of memory");
    for (size_t i = 0; i < rowCount; i++) {
      pointers_.push_back(memory_.get() + i * stride);
      std::memcpy(pointers_.back(), bytes.data() + i * rowBytes, rowBytes);
    }
  }

  unsigned char** pointers() { return pointers_.data(); }

 private:
  struct Free {
    void operator()(unsigned char* memory) const { std::free(memory); }
  };
  std::unique_ptr<unsigned char, Free> memory_;
  std::vector<unsigned char*> pointers_;
};

/** One coefficient vector a seed, one after another. */
Buffer coefficientRows(uint32_t firstSeed, size_t rowCount, size_t symbolCount) {
  Buffer rows(rowCount * symbolCount);
  for (size_t i = 0; i < rowCount; i++)
    tributary::coefficientsOf(firstSeed + static_cast<uint32_t>(i), {rows.data() + i * symbolCount, symbolCount});
  return rows;
}

/** A generation, the encoder that holds it, and coded symbols of the seeds 1, 2, 3, ... that have full rank. */
struct Coded {
  Coded(const tributary::Engine& engine, const Case& c)
      : source(randomBytes(size_t{c.symbolCount} * c.symbolBytes, c.symbolCount)) {
    check(encoder.initialize(engine, c.symbolCount, c.symbolBytes));
    check(encoder.setSymbols(0, source));
    seeds.resize(c.symbolCount + 4);
    for (size_t i = 0; i < seeds.size(); i++) seeds[i] = static_cast<uint32_t>(i + 1);
    payloads.resize(seeds.size() * c.symbolBytes);
    check(encoder.encodeSeeds(seeds, payloads));
  }

  std::span<const uint8_t> payload(size_t index) const {
    return {payloads.data() + index * encoder.symbolBytes(), encoder.symbolBytes()};
  }

  Buffer source;
  tributary::Encoder encoder;
  std::vector<uint32_t> seeds;
  Buffer payloads;
};

Measurement repeated(std::function<void()> operation) {
  auto repeater = std::make_shared<bench::Repeater>(std::move(operation));
  return [repeater](double seconds) { return repeater->measure(seconds); };
}

// The C++ core.

/** Coefficients come from fresh seeds inside the timed region. */
Measurement encodeOurs(const Case& c) {
  const tributary::Engine& engine = engineNamed(c.path);
  auto encoder = std::make_shared<tributary::Encoder>();
  check(encoder->initialize(engine, c.symbolCount, c.symbolBytes));
  check(encoder->setSymbols(0, randomBytes(size_t{c.symbolCount} * c.symbolBytes, c.symbolCount)));
  auto outs = std::make_shared<std::vector<Buffer>>(outputBuffers(c), Buffer(size_t{c.outputCount} * c.symbolBytes));
  auto seeds = std::make_shared<std::vector<uint32_t>>(c.outputCount);
  return repeated([encoder, outs, seeds, next = uint32_t{0}, turn = size_t{0}]() mutable {
    for (uint32_t& seed : *seeds) seed = ++next;
    check(encoder->encodeSeeds(*seeds, (*outs)[turn++ % outs->size()]));
  });
}

void receive(tributary::Decoder& decoder, const Coded& coded, size_t& next, uint32_t rank) {
  bool innovative = false;
  while (decoder.rank() < rank) {
    check(decoder.addSeeded(coded.seeds[next], coded.payload(next), innovative));
    next++;
  }
}

/** A decoder's whole life: made, given dense coded symbols, read. */
Measurement decodeOurs(const Case& c) {
  const tributary::Engine& engine = engineNamed(c.path);
  auto coded = std::make_shared<Coded>(engine, c);
  auto out = std::make_shared<Buffer>(coded->source.size());
  const auto decode = [coded, out, &engine, c] {
    tributary::Decoder decoder;
    check(decoder.initialize(engine, c.symbolCount, c.symbolBytes));
    size_t next = 0;
    receive(decoder, *coded, next, c.symbolCount);
    check(decoder.read(0, c.symbolCount, *out));
  };
  decode();
  require(*out == coded->source, "the decoder's result is wrong");
  return repeated(decode);
}

/** From the arrival of the last innovative symbol to all source symbols in the caller's buffer. */
Measurement decodeLastOurs(const Case& c) {
  const tributary::Engine& engine = engineNamed(c.path);
  auto coded = std::make_shared<Coded>(engine, c);
  auto out = std::make_shared<Buffer>(coded->source.size());
  const auto lap = [coded, out, &engine, c] {
    tributary::Decoder decoder;
    check(decoder.initialize(engine, c.symbolCount, c.symbolBytes));
    size_t next = 0;
    receive(decoder, *coded, next, c.symbolCount - 1);
    const bench::Clock::time_point start = bench::Clock::now();
    receive(decoder, *coded, next, c.symbolCount);
    check(decoder.read(0, c.symbolCount, *out));
    return bench::secondsSince(start);
  };
  return [lap](double seconds) { return bench::measureLaps(lap, seconds); };
}

Measurement recodeOurs(const Case& c) {
  const tributary::Engine& engine = engineNamed(c.path);
  const Coded coded(engine, c);
  auto recoder = std::make_shared<tributary::Recoder>();
  check(recoder->initialize(engine, c.symbolCount, c.symbolBytes));
  bool innovative = false;
  for (size_t i = 0; recoder->rank() < c.symbolCount; i++)
    check(recoder->addSeeded(coded.seeds[i], coded.payload(i), innovative));
  auto vector = std::make_shared<Buffer>(c.symbolCount);
  auto out = std::make_shared<Buffer>(c.symbolBytes);
  return repeated(
      [recoder, vector, out, seed = uint32_t{0}]() mutable { check(recoder->recode(++seed, *vector, *out)); });
}

/** A block of which some symbols are missing, evenly spread, and coded symbols over all of it to repair that. */
struct Block {
  Block(const tributary::Engine& engine, const Case& c)
      : shape(c), source(randomBytes(size_t{c.symbolCount} * c.symbolBytes, 1)) {
    tributary::RepairEncoder encoder;
    check(encoder.initialize(engine, c.symbolCount, c.symbolBytes));
    check(encoder.setSymbols(0, source));
    seeds.resize(c.outputCount + 4);
    for (size_t i = 0; i < seeds.size(); i++) seeds[i] = static_cast<uint32_t>(i + 1);
    payloads.resize(seeds.size() * c.symbolBytes);
    check(encoder.encodeSeeds(seeds, payloads));
  }

  bool isMissing(uint32_t index) const {
    const uint32_t spacing = shape.symbolCount / shape.outputCount;
    return index % spacing == 0 && index / spacing < shape.outputCount;
  }

  /** Everything but the last innovative coded symbol. Returns the number of the next coded symbol. */
  size_t arrive(tributary::RepairDecoder& decoder, const tributary::Engine& engine) const {
    check(decoder.initialize(engine, shape.symbolCount, shape.symbolBytes));
    bool innovative = false;
    for (uint32_t i = 0; i < shape.symbolCount; i++) {
      if (!isMissing(i))
        check(decoder.addSource(i, {source.data() + size_t{i} * shape.symbolBytes, shape.symbolBytes}, innovative));
    }
    return addCoded(decoder, 0, 1);
  }

  /** Coded symbols from number `next` on until so many are still missing. */
  size_t addCoded(tributary::RepairDecoder& decoder, size_t next, uint32_t missingCount) const {
    bool innovative = false;
    for (; decoder.missingCount() > missingCount; next++) {
      check(
          decoder.addSeeded(seeds[next], {payloads.data() + next * shape.symbolBytes, shape.symbolBytes}, innovative));
    }
    return next;
  }

  Case shape;
  Buffer source;
  std::vector<uint32_t> seeds;
  Buffer payloads;
};

/** `repair`: from the last innovative symbol to all bytes of the block in the caller's buffer; `repair-arrival`:
 * before. */
Measurement repairOurs(const Case& c) {
  const tributary::Engine& engine = engineNamed(c.path);
  auto block = std::make_shared<Block>(engine, c);
  auto out = std::make_shared<Buffer>(block->source.size());
  const bool arrivalOnly = c.op == "repair-arrival";
  const auto lap = [block, out, &engine, c, arrivalOnly] {
    tributary::RepairDecoder decoder;
    const bench::Clock::time_point first = bench::Clock::now();
    const size_t next = block->arrive(decoder, engine);
    if (arrivalOnly) return bench::secondsSince(first);
    const bench::Clock::time_point start = bench::Clock::now();
    block->addCoded(decoder, next, 0);
    check(decoder.read(0, c.symbolCount, *out));
    return bench::secondsSince(start);
  };
  lap();
  require(arrivalOnly || *out == block->source, "the repaired block is wrong");
  return [lap](double seconds) { return bench::measureLaps(lap, seconds); };
}

Measurement ours(const Case& c) {
  if (c.op == "encode" || c.op == "encode-flow") return encodeOurs(c);
  if (c.op == "decode") return decodeOurs(c);
  if (c.op == "decode-last") return decodeLastOurs(c);
  if (c.op == "recode") return recodeOurs(c);
  if (c.op == "repair" || c.op == "repair-arrival") return repairOurs(c);
  throw Absent("the core has no " + c.op);
}

// ISA-L.

/** Tables are made inside the timed region, from ready coefficients. */
Measurement encodeIsaL(const Case& c, const IsaL& isal) {
  struct State {
    std::unique_ptr<SourceRows> source;
    Buffer matrices, tables, out;
    std::vector<unsigned char*> outRows;
  };
  auto s = std::make_shared<State>();
  const Buffer source = randomBytes(size_t{c.symbolCount} * c.symbolBytes, c.symbolCount);
  s->source = std::make_unique<SourceRows>(source, c.symbolCount, c.symbolBytes, c.op == "encode-packed");
  s->matrices = coefficientRows(1, kMatrices * c.outputCount, c.symbolCount);
  s->tables.resize(size_t{32} * c.symbolCount * c.outputCount);
  s->out.resize(size_t{c.outputCount} * c.symbolBytes);
  s->outRows = rowsOf(s->out, c.outputCount, c.symbolBytes);
  const auto encode = [s, isal, c](size_t turn) {
    unsigned char* matrix = s->matrices.data() + (turn % kMatrices) * c.outputCount * c.symbolCount;
    isal.initTables(static_cast<int>(c.symbolCount), static_cast<int>(c.outputCount), matrix, s->tables.data());
    isal.encodeData(static_cast<int>(c.symbolBytes), static_cast<int>(c.symbolCount), static_cast<int>(c.outputCount),
                    s->tables.data(), s->source->pointers(), s->outRows.data());
  };
  encode(0);
  Coded coded(engineNamed("scalar"), c);
  const size_t compared = std::min(s->out.size(), coded.payloads.size());
  require(std::memcmp(s->out.data(), coded.payloads.data(), compared) == 0, "ISA-L and the core disagree");
  return repeated([encode, turn = size_t{0}]() mutable { encode(turn++); });
}

/** Invert the received coefficients, then multiply the received payloads by the inverse. */
Measurement decodeIsaL(const Case& c, const IsaL& isal) {
  struct State {
    explicit State(const Case& c)
        : coded(engineNamed("scalar"), c), received(coded.payloads, c.symbolCount, c.symbolBytes) {}
    Coded coded;
    SourceRows received;
    Buffer matrix, scratch, inverse, tables, out;
    std::vector<unsigned char*> outRows;
  };
  auto s = std::make_shared<State>(c);
  const size_t g = c.symbolCount;
  s->matrix = coefficientRows(1, g, g);
  s->inverse.resize(g * g);
  s->tables.resize(32 * g * g);
  s->out.resize(g * c.symbolBytes);
  s->outRows = rowsOf(s->out, g, c.symbolBytes);
  const auto decode = [s, isal, c, g] {
    s->scratch = s->matrix;  // inversion destroys its argument
    require(isal.invert(s->scratch.data(), s->inverse.data(), static_cast<int>(g)) == 0, "singular matrix");
    isal.initTables(static_cast<int>(g), static_cast<int>(g), s->inverse.data(), s->tables.data());
    isal.encodeData(static_cast<int>(c.symbolBytes), static_cast<int>(g), static_cast<int>(g), s->tables.data(),
                    s->received.pointers(), s->outRows.data());
  };
  decode();
  require(s->out == s->coded.source, "ISA-L's decoded bytes are wrong");
  return repeated(decode);
}

Measurement isaL(const Case& c, void* library) {
  const IsaL isal = bench::loadIsaL(library, c.path);
  if (!isal.complete()) throw Absent("ISA-L has no path " + c.path + " here");
  if (c.op == "encode" || c.op == "encode-packed") return encodeIsaL(c, isal);
  if (c.op == "decode") return decodeIsaL(c, isal);
  throw Absent("ISA-L has no " + c.op);
}

/** As many multiply-adds as the outputs of a dense code take, at the vector unit's peak: roofline.h. */
Measurement roofline(const Case& c) {
  bench::Roofline* const run = bench::findRoofline(c.path == "loads");
  if (run == nullptr) throw Absent("no roofline for this processor and compiler: " + c.path);
  auto rows = std::make_shared<SourceRows>(Buffer(bench::kRooflineBytes), 1, bench::kRooflineBytes);
  const size_t multiplyAdds = size_t{c.symbolCount} * c.symbolBytes * c.outputCount;
  return repeated([run, rows, multiplyAdds] { run(rows->pointers()[0], multiplyAdds); });
}

class Contenders {
 public:
  explicit Contenders(void* isaLibrary) : isaLibrary_(isaLibrary) {}

  double measure(const std::string& key, const Case& c, double seconds) {
    auto found = prepared_.find(key);
    if (found == prepared_.end()) found = prepared_.emplace(key, prepare(c)).first;
    return found->second(seconds);
  }

  void forget() { prepared_.clear(); }

 private:
  Measurement prepare(const Case& c) const {
    if (c.contender == "ours") return ours(c);
    if (c.contender == "isa-l") return isaL(c, isaLibrary_);
    if (c.contender == "roofline" && (c.op == "encode" || c.op == "decode")) return roofline(c);
    throw Absent(c.contender + " has no " + c.op);
  }

  void* isaLibrary_;
  std::map<std::string, Measurement> prepared_;
};

std::string answer(Contenders& contenders, const std::string& request) {
  std::istringstream words(request);
  std::string word;
  words >> word;
  std::ostringstream out;
  out.precision(9);
  if (word == "engines") {
    out << "engines";
    for (const tributary::Engine* engine : tributary::availableEngines()) out << ' ' << tributary::engineName(*engine);
  } else if (word == "forget") {
    contenders.forget();
    out << "done";
  } else if (word == "measure") {
    Case c;
    double milliseconds = 0;
    words >> c.contender >> c.path >> c.op >> c.symbolCount >> c.symbolBytes >> c.outputCount >> milliseconds;
    if (!words) throw std::runtime_error("cannot read: " + request);
    const std::string key = request.substr(0, request.rfind(' '));
    out << "seconds " << contenders.measure(key, c, milliseconds / 1000);
  } else {
    throw std::runtime_error("unknown request: " + request);
  }
  return out.str();
}

}  // namespace

int main(int argc, char** argv) {
  void* isaLibrary = argc > 1 && std::strcmp(argv[1], "-") != 0 ? dlopen(argv[1], RTLD_NOW) : nullptr;
  Contenders contenders(isaLibrary);
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << answer(contenders, line) << std::endl;
    } catch (const Absent& absent) {
      std::cout << "absent " << absent.what() << std::endl;
    } catch (const std::exception& error) {
      std::cout << "error " << error.what() << std::endl;
    }
  }
}
