/**
 * Lets JavaScript make allocations of the sanitized addon fail. `failAllocations(after, isForever)` lets `after` more
 * allocations succeed; then one fails, or all do if `isForever`. With -1 no allocation fails. It returns how many have
 * failed since the last call. `setGpuDouble(library, launchesLeft, bytesLeft)` sets when the driver's stand-in fails
 * (gpu_driver_double.h). toolchain.mjs wraps malloc, calloc and operator new in the addon's own code. Node and V8
 * allocate as usual.
 */
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>

#include "addon.h"
#include "gpu_driver_double.h"

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

void setGpuDouble(const Napi::CallbackInfo& info) {
  void* const library = dlopen(info[0].As<Napi::String>().Utf8Value().c_str(), RTLD_NOW);
  if (library == nullptr) throw Napi::Error::New(info.Env(), dlerror());
  auto* const settings = reinterpret_cast<DoubleSettings* (*)()>(dlsym(library, "doubleSettings"))();
  settings->launchesLeft = info[1].As<Napi::Number>().Int64Value();
  settings->bytesLeft = info[2].As<Napi::Number>().Int64Value();
}

}  // namespace

namespace tributary::addon {

void defineFaults(Napi::Env env, Napi::Object exports) {
  exports["setGpuDouble"] = Napi::Function::New(env, setGpuDouble, "setGpuDouble");
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
