/**
 * Lets JavaScript make allocations of the sanitized addon fail. `failAllocations(after, isForever)` lets `after` more
 * allocations succeed; then one fails, or all do if `isForever`. With -1 no allocation fails. It returns how many have
 * failed since the last call. toolchain.mjs wraps malloc, calloc and operator new in the addon's own code. Node and V8
 * allocate as usual.
 */
#include <atomic>
#include <cstdlib>

#include "addon.h"

namespace {

std::atomic<int> allocationsLeft = -1;
std::atomic<int> failures = 0;
std::atomic<bool> isForever = false;

bool fails() {
  if (allocationsLeft < 0) return false;
  if (allocationsLeft > 0) {
    allocationsLeft--;
    return false;
  }
  if (!isForever) allocationsLeft = -1;
  failures++;
  return true;
}

Napi::Value failAllocations(const Napi::CallbackInfo& info) {
  allocationsLeft = -1;
  isForever = info[1].ToBoolean();
  const int before = failures.exchange(0);
  const Napi::Value result = Napi::Number::New(info.Env(), before);
  allocationsLeft = info[0].As<Napi::Number>().Int32Value();
  return result;
}

}  // namespace

namespace tributary::addon {

void defineFaults(Napi::Env env, Napi::Object exports) {
  exports["failAllocations"] = Napi::Function::New(env, failAllocations, "failAllocations");
}

}  // namespace tributary::addon

extern "C" {
void* __real_malloc(size_t bytes);
void* __real_calloc(size_t count, size_t bytes);
void* __real__Znwm(size_t bytes);
void* __real__Znam(size_t bytes);
void* __real__ZnwmRKSt9nothrow_t(size_t bytes, const std::nothrow_t& tag);

void* __wrap_malloc(size_t bytes) { return fails() ? nullptr : __real_malloc(bytes); }
void* __wrap_calloc(size_t count, size_t bytes) { return fails() ? nullptr : __real_calloc(count, bytes); }
void* __wrap__Znwm(size_t bytes) {
  if (fails()) throw std::bad_alloc();
  return __real__Znwm(bytes);
}
void* __wrap__Znam(size_t bytes) {
  if (fails()) throw std::bad_alloc();
  return __real__Znam(bytes);
}
void* __wrap__ZnwmRKSt9nothrow_t(size_t bytes, const std::nothrow_t& tag) {
  return fails() ? nullptr : __real__ZnwmRKSt9nothrow_t(bytes, tag);
}
}
