/**
 * The Node addon: the codec core as N-API classes. No policy here: src/index.ts chooses engines and warns.
 * JavaScript sees `engineNames`, `coefficients(seed, symbolCount)` and the classes Encoder, Decoder and Recoder, whose
 * methods are those of protocol's Codec; constructors take (engineIndex, symbolCount, symbolBytes). `setErrorClass`
 * comes first and names the class that misuse throws: new Class(what, got, limit, message?).
 */
#include <napi.h>

#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "tributary/codec.h"

namespace {

using namespace tributary;

/** What one environment (the main thread or a worker) has of its own. */
struct Environment {
  Napi::FunctionReference errorClass;
};

[[noreturn]] void fail(Napi::Env env, const std::string& what, double got, double limit,
                       const std::string& message = "") {
  const Environment* environment = env.GetInstanceData<Environment>();
  if (environment->errorClass.IsEmpty()) throw Napi::Error::New(env, "setErrorClass comes first");
  std::vector<napi_value> arguments = {Napi::String::New(env, what), Napi::Number::New(env, got),
                                       Napi::Number::New(env, limit)};
  if (!message.empty()) arguments.push_back(Napi::String::New(env, message));
  throw Napi::Error(env, environment->errorClass.New(arguments));
}

[[noreturn]] void failOutOfMemory(Napi::Env env, uint64_t bytes) {
  fail(env, "memoryBytes", static_cast<double>(bytes), 0,
       "out of memory: " + std::to_string(bytes) + " more bytes were not to be had");
}

void check(Napi::Env env, const Status& status) {
  if (status.ok()) return;
  if (status.code == Status::Code::kOutOfMemory) failOutOfMemory(env, status.got);
  fail(env, status.what, static_cast<double>(status.got), static_cast<double>(status.limit));
}

/** An argument that must be an integer 0..2^32-1. */
uint32_t u32Argument(const Napi::CallbackInfo& info, size_t position, const char* what) {
  constexpr double kMost = std::numeric_limits<uint32_t>::max();
  const Napi::Value value = info[position];
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : std::nan("");
  if (!(number >= 0 && number <= kMost && number == std::floor(number))) fail(info.Env(), what, number, kMost);
  return static_cast<uint32_t>(number);
}

[[noreturn]] void failType(Napi::Env env, const char* what, const char* type) {
  fail(env, what, std::nan(""), std::nan(""), std::string(what) + ": not a " + type);
}

/** An argument that must be a Uint8Array; a detached one has no bytes. */
Bytes bytesArgument(const Napi::CallbackInfo& info, size_t position, const char* what) {
  napi_typedarray_type type;
  size_t length = 0;
  void* data = nullptr;
  const napi_status status =
      napi_get_typedarray_info(info.Env(), info[position], &type, &length, &data, nullptr, nullptr);
  if (status != napi_ok || type != napi_uint8_array) failType(info.Env(), what, "Uint8Array");
  return {static_cast<uint8_t*>(data), data == nullptr ? 0 : length};
}

std::span<const uint32_t> seedsArgument(const Napi::CallbackInfo& info, size_t position, const char* what) {
  napi_typedarray_type type;
  size_t length = 0;
  void* data = nullptr;
  const napi_status status =
      napi_get_typedarray_info(info.Env(), info[position], &type, &length, &data, nullptr, nullptr);
  if (status != napi_ok || type != napi_uint32_array) failType(info.Env(), what, "Uint32Array");
  return {static_cast<const uint32_t*>(data), data == nullptr ? 0 : length};
}

/** What a coder keeps outside the JavaScript heap, roughly: a hint to the garbage collector. */
int64_t heldBytes(uint32_t symbolCount, uint32_t symbolBytes) {
  return int64_t{symbolCount} * (symbolBytes + 2 * symbolCount) + 4096;
}

/** Owns one coder of the core until free() or until JavaScript drops the object. */
template <class Self, class Coder>
class Wrap : public Napi::ObjectWrap<Self> {
 public:
  explicit Wrap(const Napi::CallbackInfo& info) : Napi::ObjectWrap<Self>(info) {
    const uint32_t engineIndex = u32Argument(info, 0, "engineIndex");
    const auto engines = availableEngines();
    if (engineIndex >= engines.size()) {
      fail(info.Env(), "engineIndex", engineIndex, static_cast<double>(engines.size() - 1));
    }
    symbolCount_ = u32Argument(info, 1, "symbolCount");
    symbolBytes_ = u32Argument(info, 2, "symbolBytes");
    std::unique_ptr<Coder> coder(new (std::nothrow) Coder);
    if (coder == nullptr) failOutOfMemory(info.Env(), sizeof(Coder));
    check(info.Env(), coder->initialize(*engines[engineIndex], symbolCount_, symbolBytes_));
    info.This().As<Napi::Object>().TypeTag(&Self::kTypeTag);
    coder_ = std::move(coder);
    adjustExternalMemory(info.Env(), 1);
  }

  void Finalize(Napi::Env env) override { release(env); }

 protected:
  Coder& coder(const Napi::CallbackInfo& info) {
    if (coder_ == nullptr) fail(info.Env(), "freed", 0, 0, "used after free()");
    return *coder_;
  }

  void free(const Napi::CallbackInfo& info) { release(info.Env()); }

  /** For getters: unlike methods they can be called on an object of another class, which `this` then is not. */
  static void checkReceiver(const Napi::CallbackInfo& info) {
    if (!info.This().As<Napi::Object>().CheckTypeTag(&Self::kTypeTag)) failType(info.Env(), "this", Self::kName);
  }
  Napi::Value symbolCount(const Napi::CallbackInfo& info) {
    checkReceiver(info);
    return number(info, symbolCount_);
  }
  Napi::Value symbolBytes(const Napi::CallbackInfo& info) {
    checkReceiver(info);
    return number(info, symbolBytes_);
  }

  static Napi::Value number(const Napi::CallbackInfo& info, uint32_t value) {
    return Napi::Number::New(info.Env(), value);
  }

 private:
  void release(Napi::Env env) {
    if (coder_ == nullptr) return;
    adjustExternalMemory(env, -1);
    coder_.reset();
  }

  void adjustExternalMemory(Napi::Env env, int sign) {
    Napi::MemoryManagement::AdjustExternalMemory(env, sign * heldBytes(symbolCount_, symbolBytes_));
  }

  uint32_t symbolCount_ = 0;
  uint32_t symbolBytes_ = 0;
  std::unique_ptr<Coder> coder_;
};

class EncoderWrap : public Wrap<EncoderWrap, Encoder> {
 public:
  using Wrap::Wrap;
  static constexpr const char* kName = "Encoder";
  static constexpr napi_type_tag kTypeTag = {0x7472696275746172, 1};

  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, kName,
                       {InstanceMethod("setSymbols", &EncoderWrap::setSymbols),
                        InstanceMethod("encodeSeeds", &EncoderWrap::encodeSeeds),
                        InstanceMethod("encodeVector", &EncoderWrap::encodeVector),
                        InstanceMethod("free", &EncoderWrap::free),
                        InstanceAccessor("symbolCount", &EncoderWrap::symbolCount, nullptr),
                        InstanceAccessor("symbolBytes", &EncoderWrap::symbolBytes, nullptr)});
  }

 private:
  void setSymbols(const Napi::CallbackInfo& info) {
    Encoder& encoder = coder(info);
    const uint32_t firstIndex = u32Argument(info, 0, "firstIndex");
    check(info.Env(), encoder.setSymbols(firstIndex, bytesArgument(info, 1, "bytes")));
  }
  void encodeSeeds(const Napi::CallbackInfo& info) {
    const Encoder& encoder = coder(info);
    const auto seeds = seedsArgument(info, 0, "seeds");
    check(info.Env(), encoder.encodeSeeds(seeds, bytesArgument(info, 1, "out")));
  }
  void encodeVector(const Napi::CallbackInfo& info) {
    const Encoder& encoder = coder(info);
    const Bytes coefficients = bytesArgument(info, 0, "coefficients");
    check(info.Env(), encoder.encodeVector(coefficients, bytesArgument(info, 1, "out")));
  }
};

/** What decoder and recoder have in common: they take symbols in and count degrees of freedom. */
template <class Self, class Coder>
class CollectorWrap : public Wrap<Self, Coder> {
 public:
  using Wrap<Self, Coder>::Wrap;

 protected:
  Napi::Value rank(const Napi::CallbackInfo& info) {
    this->checkReceiver(info);
    return this->number(info, this->coder(info).rank());
  }

  Napi::Value addSystematic(const Napi::CallbackInfo& info) {
    Coder& coder = this->coder(info);
    const uint32_t index = u32Argument(info, 0, "index");
    bool innovative = false;
    check(info.Env(), coder.addSystematic(index, bytesArgument(info, 1, "payload"), innovative));
    return Napi::Boolean::New(info.Env(), innovative);
  }
  Napi::Value addSeeded(const Napi::CallbackInfo& info) {
    Coder& coder = this->coder(info);
    const uint32_t seed = u32Argument(info, 0, "seed");
    bool innovative = false;
    check(info.Env(), coder.addSeeded(seed, bytesArgument(info, 1, "payload"), innovative));
    return Napi::Boolean::New(info.Env(), innovative);
  }
  Napi::Value addVector(const Napi::CallbackInfo& info) {
    Coder& coder = this->coder(info);
    const Bytes coefficients = bytesArgument(info, 0, "coefficients");
    bool innovative = false;
    check(info.Env(), coder.addVector(coefficients, bytesArgument(info, 1, "payload"), innovative));
    return Napi::Boolean::New(info.Env(), innovative);
  }
};

class DecoderWrap : public CollectorWrap<DecoderWrap, Decoder> {
 public:
  using CollectorWrap::CollectorWrap;
  static constexpr const char* kName = "Decoder";
  static constexpr napi_type_tag kTypeTag = {0x7472696275746172, 2};

  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, kName,
                       {InstanceMethod("addSystematic", &DecoderWrap::addSystematic),
                        InstanceMethod("addSeeded", &DecoderWrap::addSeeded),
                        InstanceMethod("addVector", &DecoderWrap::addVector),
                        InstanceMethod("isDecoded", &DecoderWrap::isDecoded),
                        InstanceMethod("read", &DecoderWrap::read),
                        InstanceMethod("free", &DecoderWrap::free),
                        InstanceAccessor("rank", &DecoderWrap::rank, nullptr),
                        InstanceAccessor("symbolCount", &DecoderWrap::symbolCount, nullptr),
                        InstanceAccessor("symbolBytes", &DecoderWrap::symbolBytes, nullptr)});
  }

 private:
  Napi::Value isDecoded(const Napi::CallbackInfo& info) {
    const Decoder& decoder = coder(info);
    bool decoded = false;
    check(info.Env(), decoder.isDecoded(u32Argument(info, 0, "index"), decoded));
    return Napi::Boolean::New(info.Env(), decoded);
  }
  void read(const Napi::CallbackInfo& info) {
    const Decoder& decoder = coder(info);
    const uint32_t firstIndex = u32Argument(info, 0, "firstIndex");
    const uint32_t count = u32Argument(info, 1, "count");
    check(info.Env(), decoder.read(firstIndex, count, bytesArgument(info, 2, "out")));
  }
};

class RecoderWrap : public CollectorWrap<RecoderWrap, Recoder> {
 public:
  using CollectorWrap::CollectorWrap;
  static constexpr const char* kName = "Recoder";
  static constexpr napi_type_tag kTypeTag = {0x7472696275746172, 3};

  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, kName,
                       {InstanceMethod("addSystematic", &RecoderWrap::addSystematic),
                        InstanceMethod("addSeeded", &RecoderWrap::addSeeded),
                        InstanceMethod("addVector", &RecoderWrap::addVector),
                        InstanceMethod("recode", &RecoderWrap::recode),
                        InstanceMethod("free", &RecoderWrap::free),
                        InstanceAccessor("rank", &RecoderWrap::rank, nullptr),
                        InstanceAccessor("symbolCount", &RecoderWrap::symbolCount, nullptr),
                        InstanceAccessor("symbolBytes", &RecoderWrap::symbolBytes, nullptr)});
  }

 private:
  void recode(const Napi::CallbackInfo& info) {
    const Recoder& recoder = coder(info);
    const uint32_t seed = u32Argument(info, 0, "seed");
    const Bytes outCoefficients = bytesArgument(info, 1, "outCoefficients");
    check(info.Env(), recoder.recode(seed, outCoefficients, bytesArgument(info, 2, "outPayload")));
  }
};

Napi::Value coefficients(const Napi::CallbackInfo& info) {
  const uint32_t seed = u32Argument(info, 0, "seed");
  const uint32_t symbolCount = u32Argument(info, 1, "symbolCount");
  if (symbolCount < 1) fail(info.Env(), "symbolCount", symbolCount, 1);
  if (symbolCount > kSymbolCountMax) fail(info.Env(), "symbolCount", symbolCount, kSymbolCountMax);
  Napi::Uint8Array out = Napi::Uint8Array::New(info.Env(), symbolCount);
  coefficientsOf(seed, Bytes(out.Data(), symbolCount));
  return out;
}

void setErrorClass(const Napi::CallbackInfo& info) {
  info.Env().GetInstanceData<Environment>()->errorClass = Napi::Persistent(info[0].As<Napi::Function>());
}

Napi::Object initialize(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new Environment);
  const auto engines = availableEngines();
  Napi::Array names = Napi::Array::New(env, engines.size());
  for (uint32_t i = 0; i < engines.size(); i++) names[i] = Napi::String::New(env, engineName(*engines[i]));
  exports["engineNames"] = names;
  exports["coefficients"] = Napi::Function::New(env, coefficients, "coefficients");
  exports["setErrorClass"] = Napi::Function::New(env, setErrorClass, "setErrorClass");
  exports["Encoder"] = EncoderWrap::define(env);
  exports["Decoder"] = DecoderWrap::define(env);
  exports["Recoder"] = RecoderWrap::define(env);
  return exports;
}

}  // namespace

NODE_API_MODULE(codec, initialize)
