/**
 * The Node addon: the codec core as N-API classes. It decides nothing; src/index.ts chooses engines and warns.
 * Its exports:
 *
 *     setErrorClass(Class)              call this first: misuse throws new Class(what, got, limit, message?)
 *     engineNames                       the available engines, fastest first
 *     coefficients(seed, symbolCount)   the coding coefficients of a seed
 *     Encoder, Decoder, Recoder, RepairEncoder, RepairDecoder
 *                                       the coders of protocol's Codec: new Coder(engineIndex, symbolCount,
 * symbolBytes) Pool                              batches on threads, wrapped by src/pool.ts
 */
#include "addon.h"

#include <cmath>
#include <iterator>

namespace tributary::addon {

Napi::Value makeError(Napi::Env env, const char* what, double got, double limit, const char* message) {
  const Environment* environment = env.GetInstanceData<Environment>();
  if (environment->errorClass.IsEmpty()) throw Napi::Error::New(env, "call setErrorClass first");
  const napi_value arguments[] = {Napi::String::New(env, what), Napi::Number::New(env, got),
                                  Napi::Number::New(env, limit),
                                  message == nullptr ? env.Undefined() : Napi::String::New(env, message)};
  return environment->errorClass.Value().New(std::size(arguments), arguments);
}

Napi::Value makeError(Napi::Env env, const Status& status) {
  const auto got = static_cast<double>(status.got);
  if (status.code != Status::Code::kOutOfMemory)
    return makeError(env, status.what, got, static_cast<double>(status.limit));
  return makeError(env, "memoryBytes", got, 0, Message("out of memory: %.0f more bytes were not available", got).text);
}

void fail(Napi::Env env, const char* what, double got, double limit, const char* message) {
  throw Napi::Error(env, makeError(env, what, got, limit, message));
}

void failOutOfMemory(Napi::Env env, uint64_t bytes) {
  throw Napi::Error(env, makeError(env, {Status::Code::kOutOfMemory, "", bytes, 0}));
}

void check(Napi::Env env, const Status& status) {
  if (!status.ok()) throw Napi::Error(env, makeError(env, status));
}

uint32_t u32Argument(const Napi::CallbackInfo& info, size_t position, const char* what) {
  constexpr double kMost = std::numeric_limits<uint32_t>::max();
  const Napi::Value value = info[position];
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : std::nan("");
  if (!(number >= 0 && number <= kMost && number == std::floor(number))) fail(info.Env(), what, number, kMost);
  return static_cast<uint32_t>(number);
}

void failType(Napi::Env env, const char* what, const char* type) {
  fail(env, what, std::nan(""), std::nan(""), Message("%s: not a %s", what, type).text);
}

namespace {

/** Returns an argument that must be a typed array of type `wanted`. A detached array has no elements. */
template <class Element>
std::span<Element> elementsArgument(const Napi::CallbackInfo& info, size_t position, const char* what,
                                    napi_typedarray_type wanted, const char* typeName) {
  napi_typedarray_type type;
  size_t length = 0;
  void* data = nullptr;
  const napi_status status =
      napi_get_typedarray_info(info.Env(), info[position], &type, &length, &data, nullptr, nullptr);
  if (status != napi_ok || type != wanted) failType(info.Env(), what, typeName);
  return {static_cast<Element*>(data), data == nullptr ? 0 : length};
}

}  // namespace

Bytes bytesArgument(const Napi::CallbackInfo& info, size_t position, const char* what) {
  return elementsArgument<uint8_t>(info, position, what, napi_uint8_array, "Uint8Array");
}

std::span<const uint32_t> wordsArgument(const Napi::CallbackInfo& info, size_t position, const char* what) {
  return elementsArgument<const uint32_t>(info, position, what, napi_uint32_array, "Uint32Array");
}

const Engine& engineArgument(const Napi::CallbackInfo& info, size_t position) {
  const uint32_t index = u32Argument(info, position, "engineIndex");
  const auto engines = availableEngines();
  if (index >= engines.size()) fail(info.Env(), "engineIndex", index, static_cast<double>(engines.size() - 1));
  return *engines[index];
}

namespace {

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

}  // namespace

static Napi::Object initialize(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new Environment);
  const auto engines = availableEngines();
  Napi::Array names = Napi::Array::New(env, engines.size());
  for (uint32_t i = 0; i < engines.size(); i++) names[i] = Napi::String::New(env, engineName(*engines[i]));
  exports["engineNames"] = names;
  exports["coefficients"] = Napi::Function::New(env, coefficients, "coefficients");
  exports["setErrorClass"] = Napi::Function::New(env, setErrorClass, "setErrorClass");
  defineCoders(env, exports);
  definePool(env, exports);
#ifdef TRIBUTARY_FAULTS
  defineFaults(env, exports);
#endif
  return exports;
}

}  // namespace tributary::addon

using tributary::addon::initialize;
NODE_API_MODULE(codec, initialize)
