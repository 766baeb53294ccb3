/** The coder classes of protocol's Codec. Each method is one call of the core, on the environment's own thread. */
#include <atomic>
#include <utility>

#include "addon.h"

namespace tributary::addon {
namespace {

/**
 * Owns one coder of the core until free(), or until JavaScript drops the object. It has the methods that several
 * classes share. A method is compiled only for the classes that name it.
 */
template <class Self, class Coder>
class Wrap : public Napi::ObjectWrap<Self> {
 public:
  explicit Wrap(const Napi::CallbackInfo& info) : Napi::ObjectWrap<Self>(info) {
    const Engine& engine = engineArgument(info, 0);
    symbolCount_ = u32Argument(info, 1, "symbolCount");
    symbolBytes_ = u32Argument(info, 2, "symbolBytes");
    std::shared_ptr<Held<Coder>> held = makeHeld<Coder>(info.Env(), engine, symbolCount_, symbolBytes_);
    info.This().As<Napi::Object>().TypeTag(&Self::kTypeTag);
    held_ = std::move(held);
    adjustExternalMemory(info.Env(), 1);
  }

  void Finalize(Napi::Env env) override { release(env); }

  /** Returns the coder behind `value`, for a batch. */
  static std::shared_ptr<Held<Coder>> heldBy(Napi::Env env, Napi::Value value) {
    if (!value.IsObject() || !value.As<Napi::Object>().CheckTypeTag(&Self::kTypeTag))
      failType(env, "coder", Self::kName);
    const auto& held = Self::Unwrap(value.As<Napi::Object>())->held_;
    if (held == nullptr) fail(env, "freed", 0, 0, "used after free()");
    return held;
  }

 protected:
  /** The coder for calls that change nothing. They may run beside batches that change nothing either. */
  const Coder& reader(const Napi::CallbackInfo& info) const {
    if (held_ == nullptr) fail(info.Env(), "freed", 0, 0, "used after free()");
    return held_->coder;
  }

  /** The coder for calls that change it. No batch may be in flight on it. */
  Coder& coder(const Napi::CallbackInfo& info) {
    reader(info);
    refuseInFlight(info.Env(), held_->batches);
    held_->sourceId = nextSourceId();
    return held_->coder;
  }

  /** Cancelled batches keep the memory until they stop. */
  void free(const Napi::CallbackInfo& info) {
    if (held_ != nullptr) refuseInFlight(info.Env(), held_->wanted);
    release(info.Env());
  }

  /** JavaScript can call a getter on an object of another class, which InstanceAccessor does not check. */
  template <auto method>
  static Napi::ClassPropertyDescriptor<Self> getter(const char* name) {
    napi_property_descriptor descriptor = {};
    descriptor.utf8name = name;
    descriptor.getter = [](napi_env env, napi_callback_info raw) -> napi_value {
      return Napi::details::WrapCallback(env, [&]() -> napi_value {
        const Napi::CallbackInfo info(env, raw);
        const Napi::Value self = info.This();
        if (!self.IsObject() || !self.As<Napi::Object>().CheckTypeTag(&Self::kTypeTag))
          failType(env, "this", Self::kName);
        return (Self::Unwrap(self.As<Napi::Object>())->*method)(info);
      });
    };
    return descriptor;
  }
  Napi::Value symbolCount(const Napi::CallbackInfo& info) { return number(info, symbolCount_); }
  Napi::Value symbolBytes(const Napi::CallbackInfo& info) { return number(info, symbolBytes_); }

  void setSymbols(const Napi::CallbackInfo& info) {
    Coder& encoder = coder(info);
    const uint32_t firstIndex = u32Argument(info, 0, "firstIndex");
    check(info.Env(), encoder.setSymbols(firstIndex, bytesArgument(info, 1, "bytes")));
  }
  void encodeSeeds(const Napi::CallbackInfo& info) {
    const Coder& encoder = reader(info);
    const auto seeds = wordsArgument(info, 0, "seeds");
    check(info.Env(), encoder.encodeSeeds(seeds, bytesArgument(info, 1, "out")));
  }
  Napi::Value addSeeded(const Napi::CallbackInfo& info) {
    Coder& decoder = coder(info);
    const uint32_t seed = u32Argument(info, 0, "seed");
    bool innovative = false;
    check(info.Env(), decoder.addSeeded(seed, bytesArgument(info, 1, "payload"), innovative));
    return Napi::Boolean::New(info.Env(), innovative);
  }
  Napi::Value isDecoded(const Napi::CallbackInfo& info) {
    const Coder& decoder = coder(info);
    bool decoded = false;
    check(info.Env(), decoder.isDecoded(u32Argument(info, 0, "index"), decoded));
    return Napi::Boolean::New(info.Env(), decoded);
  }
  void read(const Napi::CallbackInfo& info) {
    Coder& decoder = coder(info);
    const uint32_t firstIndex = u32Argument(info, 0, "firstIndex");
    const uint32_t count = u32Argument(info, 1, "count");
    check(info.Env(), decoder.read(firstIndex, count, bytesArgument(info, 2, "out")));
  }

  static Napi::Value number(const Napi::CallbackInfo& info, uint32_t value) {
    return Napi::Number::New(info.Env(), value);
  }

 private:
  static void refuseInFlight(Napi::Env env, uint32_t batches) {
    if (batches == 0) return;
    fail(env, "batchesInFlight", batches, 0,
         Message("in use: got %u batches in flight on this coder, limit 0: await or cancel them first", batches).text);
  }

  void release(Napi::Env env) {
    if (held_ == nullptr) return;
    adjustExternalMemory(env, -1);
    held_.reset();
  }

  /** Tells the garbage collector the size of the payloads. Coefficients are small beside them. */
  void adjustExternalMemory(Napi::Env env, int sign) {
    Napi::MemoryManagement::AdjustExternalMemory(env, sign * (int64_t{symbolCount_} * symbolBytes_ + 4096));
  }

  uint32_t symbolCount_ = 0;
  uint32_t symbolBytes_ = 0;
  std::shared_ptr<Held<Coder>> held_;
};

class EncoderWrap : public Wrap<EncoderWrap, Encoder> {
 public:
  using Wrap::Wrap;
  static constexpr const char* kName = "Encoder";
  static constexpr napi_type_tag kTypeTag = {0x7472696275746172, 1};

  static Napi::Function define(Napi::Env env) {
    return DefineClass(
        env, kName,
        {InstanceMethod("setSymbols", &EncoderWrap::setSymbols),
         InstanceMethod("encodeSeeds", &EncoderWrap::encodeSeeds),
         InstanceMethod("encodeVector", &EncoderWrap::encodeVector), InstanceMethod("free", &EncoderWrap::free),
         getter<&EncoderWrap::symbolCount>("symbolCount"), getter<&EncoderWrap::symbolBytes>("symbolBytes")});
  }

 private:
  void encodeVector(const Napi::CallbackInfo& info) {
    const Encoder& encoder = reader(info);
    const Bytes coefficients = bytesArgument(info, 0, "coefficients");
    check(info.Env(), encoder.encodeVector(coefficients, bytesArgument(info, 1, "out")));
  }
};

/** The common part of Decoder and Recoder: it collects symbols and counts degrees of freedom. */
template <class Self, class Coder>
class CollectorWrap : public Wrap<Self, Coder> {
 public:
  using Wrap<Self, Coder>::Wrap;

 protected:
  Napi::Value rank(const Napi::CallbackInfo& info) { return this->number(info, this->coder(info).rank()); }

  Napi::Value addSystematic(const Napi::CallbackInfo& info) {
    Coder& coder = this->coder(info);
    const uint32_t index = u32Argument(info, 0, "index");
    bool innovative = false;
    check(info.Env(), coder.addSystematic(index, bytesArgument(info, 1, "payload"), innovative));
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
    return DefineClass(
        env, kName,
        {InstanceMethod("addSystematic", &DecoderWrap::addSystematic),
         InstanceMethod("addSeeded", &DecoderWrap::addSeeded), InstanceMethod("addVector", &DecoderWrap::addVector),
         InstanceMethod("isDecoded", &DecoderWrap::isDecoded), InstanceMethod("read", &DecoderWrap::read),
         InstanceMethod("free", &DecoderWrap::free), getter<&DecoderWrap::rank>("rank"),
         getter<&DecoderWrap::symbolCount>("symbolCount"), getter<&DecoderWrap::symbolBytes>("symbolBytes")});
  }
};

class RecoderWrap : public CollectorWrap<RecoderWrap, Recoder> {
 public:
  using CollectorWrap::CollectorWrap;
  static constexpr const char* kName = "Recoder";
  static constexpr napi_type_tag kTypeTag = {0x7472696275746172, 3};

  static Napi::Function define(Napi::Env env) {
    return DefineClass(
        env, kName,
        {InstanceMethod("addSystematic", &RecoderWrap::addSystematic),
         InstanceMethod("addSeeded", &RecoderWrap::addSeeded), InstanceMethod("addVector", &RecoderWrap::addVector),
         InstanceMethod("recode", &RecoderWrap::recode), InstanceMethod("free", &RecoderWrap::free),
         getter<&RecoderWrap::rank>("rank"), getter<&RecoderWrap::symbolCount>("symbolCount"),
         getter<&RecoderWrap::symbolBytes>("symbolBytes")});
  }

 private:
  void recode(const Napi::CallbackInfo& info) {
    const Recoder& recoder = coder(info);
    const uint32_t seed = u32Argument(info, 0, "seed");
    const Bytes outCoefficients = bytesArgument(info, 1, "outCoefficients");
    check(info.Env(), recoder.recode(seed, outCoefficients, bytesArgument(info, 2, "outPayload")));
  }
};

class RepairEncoderWrap : public Wrap<RepairEncoderWrap, RepairEncoder> {
 public:
  using Wrap::Wrap;
  static constexpr const char* kName = "RepairEncoder";
  static constexpr napi_type_tag kTypeTag = {0x7472696275746172, 4};

  static Napi::Function define(Napi::Env env) {
    return DefineClass(
        env, kName,
        {InstanceMethod("setSymbols", &RepairEncoderWrap::setSymbols),
         InstanceMethod("encodeSeeds", &RepairEncoderWrap::encodeSeeds),
         InstanceMethod("free", &RepairEncoderWrap::free), getter<&RepairEncoderWrap::symbolCount>("symbolCount"),
         getter<&RepairEncoderWrap::symbolBytes>("symbolBytes")});
  }
};

class RepairDecoderWrap : public Wrap<RepairDecoderWrap, RepairDecoder> {
 public:
  using Wrap::Wrap;
  static constexpr const char* kName = "RepairDecoder";
  static constexpr napi_type_tag kTypeTag = {0x7472696275746172, 5};

  static Napi::Function define(Napi::Env env) {
    return DefineClass(
        env, kName,
        {InstanceMethod("addSource", &RepairDecoderWrap::addSource),
         InstanceMethod("addSeeded", &RepairDecoderWrap::addSeeded),
         InstanceMethod("isDecoded", &RepairDecoderWrap::isDecoded), InstanceMethod("read", &RepairDecoderWrap::read),
         InstanceMethod("free", &RepairDecoderWrap::free), getter<&RepairDecoderWrap::missingCount>("missingCount"),
         getter<&RepairDecoderWrap::symbolCount>("symbolCount"),
         getter<&RepairDecoderWrap::symbolBytes>("symbolBytes")});
  }

 private:
  Napi::Value missingCount(const Napi::CallbackInfo& info) { return number(info, coder(info).missingCount()); }
  Napi::Value addSource(const Napi::CallbackInfo& info) {
    RepairDecoder& decoder = coder(info);
    const uint32_t index = u32Argument(info, 0, "index");
    bool innovative = false;
    check(info.Env(), decoder.addSource(index, bytesArgument(info, 1, "payload"), innovative));
    return Napi::Boolean::New(info.Env(), innovative);
  }
};

}  // namespace

uint64_t nextSourceId() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

std::shared_ptr<Held<Encoder>> heldEncoder(Napi::Env env, Napi::Value value) { return EncoderWrap::heldBy(env, value); }
std::shared_ptr<Held<Decoder>> heldDecoder(Napi::Env env, Napi::Value value) { return DecoderWrap::heldBy(env, value); }

void defineCoders(Napi::Env env, Napi::Object exports) {
  exports["Encoder"] = EncoderWrap::define(env);
  exports["Decoder"] = DecoderWrap::define(env);
  exports["Recoder"] = RecoderWrap::define(env);
  exports["RepairEncoder"] = RepairEncoderWrap::define(env);
  exports["RepairDecoder"] = RepairDecoderWrap::define(env);
}

}  // namespace tributary::addon
