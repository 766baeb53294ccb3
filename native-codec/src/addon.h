/**
 * The common part of the addon's files: data of an environment, errors, arguments, and the coders behind the classes.
 * Only the addon*.cc files know Node. Everything here belongs to the environment's own thread, except `Held::coder`
 * during a batch.
 */
#ifndef TRIBUTARY_ADDON_H_
#define TRIBUTARY_ADDON_H_

#include <napi.h>

#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <new>

#include "addon_executor.h"
#include "tributary/codec.h"

namespace tributary::addon {

/** The data of one environment, which is the main thread or a worker. */
struct Environment {
  Napi::FunctionReference errorClass;
};

/** A message in the format of printf. It is on the stack, because errors must work without memory. */
struct Message {
  template <class... Values>
  explicit Message(const char* format, Values... values) {
    snprintf(text, sizeof text, format, values...);
  }
  char text[200];
};

/** Makes a CodecError(what, got, limit, message?). */
Napi::Value makeError(Napi::Env env, const char* what, double got, double limit, const char* message = nullptr);
Napi::Value makeError(Napi::Env env, const Status& status);
/** These throw an error of that kind. */
[[noreturn]] void fail(Napi::Env env, const char* what, double got, double limit, const char* message = nullptr);
[[noreturn]] void failOutOfMemory(Napi::Env env, uint64_t bytes);
[[noreturn]] void failType(Napi::Env env, const char* what, const char* type);
/** Throws if `status` is a failure. */
void check(Napi::Env env, const Status& status);

/** Returns an argument that must be an integer 0..2^32-1. */
uint32_t u32Argument(const Napi::CallbackInfo& info, size_t position, const char* what);
/** Returns an argument that must be a Uint8Array. A detached array has no bytes. */
Bytes bytesArgument(const Napi::CallbackInfo& info, size_t position, const char* what);
/** Returns an argument that must be a Uint32Array. */
std::span<const uint32_t> wordsArgument(const Napi::CallbackInfo& info, size_t position, const char* what);
/** Returns the engine that an argument names by its index in availableEngines. */
const Engine& engineArgument(const Napi::CallbackInfo& info, size_t position);

/** A number that no other sources of this process have. */
uint64_t nextSourceId();

/**
 * A coder and the state of its batches. A batch shares ownership, so that the memory outlives the JavaScript object.
 * The executor runs one batch at a time of those with the same `turn`.
 */
template <class Coder>
struct Held {
  Coder coder;
  /** Batches that are not settled, and those among them that are not cancelled. */
  uint32_t batches = 0;
  uint32_t wanted = 0;
  std::shared_ptr<Turn> turn;
  /** Names the bytes of an encoder's sources: another number after each change. */
  uint64_t sourceId = nextSourceId();
};

template <class Coder>
std::shared_ptr<Held<Coder>> makeHeld(Napi::Env env, const Engine& engine, uint32_t symbolCount, uint32_t symbolBytes) {
  std::shared_ptr<Held<Coder>> held;
  try {
    held = std::make_shared<Held<Coder>>();
    held->turn = std::make_shared<Turn>();
  } catch (const std::bad_alloc&) {
    failOutOfMemory(env, sizeof(Held<Coder>));
  }
  check(env, held->coder.initialize(engine, symbolCount, symbolBytes));
  return held;
}

/** Returns the coder behind a JavaScript Encoder or Decoder. Throws for any other value and for a freed coder. */
std::shared_ptr<Held<Encoder>> heldEncoder(Napi::Env env, Napi::Value value);
std::shared_ptr<Held<Decoder>> heldDecoder(Napi::Env env, Napi::Value value);

void defineCoders(Napi::Env env, Napi::Object exports);
void definePool(Napi::Env env, Napi::Object exports);
/** Defined in test/addon_faults.cc, which only the sanitized addon has. */
void defineFaults(Napi::Env env, Napi::Object exports);

}  // namespace tributary::addon

#endif  // TRIBUTARY_ADDON_H_
