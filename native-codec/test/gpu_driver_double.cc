/**
 * A stand-in for libcuda.so.1, built as a shared library: it runs the kernels on the host, at once, and fails when a
 * test tells it to. A device address is a host address.
 */
#include "gpu_driver_double.h"

#include <cstdlib>
#include <cstring>

#include "gpu/driver.h"
#include "gpu/kernels_host.h"

namespace {

using namespace tributary::gpu;

DoubleSettings settings;

/** True if the device is lost at this call of the kind that a test counts. */
bool loses() {
  if (settings.launchesLeft < 0) return false;
  if (settings.launchesLeft == 0) return true;
  settings.launchesLeft--;
  return false;
}

int takeMemory(void** memory, size_t bytes) {
  if (settings.bytesLeft >= 0 && static_cast<int64_t>(bytes) > settings.bytesLeft) return kDriverOutOfMemory;
  *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  memset(*memory, 0xA5, bytes);
  return *memory == nullptr ? kDriverOutOfMemory : kDriverOk;
}

constexpr int kLaunchFailed = 719;

}  // namespace

#define DOUBLE extern "C" __attribute__((visibility("default"))) int

extern "C" __attribute__((visibility("default"))) DoubleSettings* doubleSettings() { return &settings; }

DOUBLE cuInit(unsigned) { return settings.initializeResult; }
DOUBLE cuDriverGetVersion(int* version) { return *version = settings.driverVersion, kDriverOk; }
DOUBLE cuDeviceGetCount(int* count) { return *count = settings.deviceCount, kDriverOk; }
DOUBLE cuDeviceGet(int* device, int ordinal) { return *device = ordinal, kDriverOk; }
DOUBLE cuDeviceGetName(char* name, int bytes, int) { return strncpy(name, "host", bytes), kDriverOk; }
DOUBLE cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case kCapabilityMajor:
      return *value = settings.capability / 10, kDriverOk;
    case kCapabilityMinor:
      return *value = settings.capability % 10, kDriverOk;
    case kMultiprocessorCount:
      return *value = 2, kDriverOk;
    case kSharedBytesPerMultiprocessor:
      return *value = 100 << 10, kDriverOk;
    case kSharedBytesPerBlock:
      return *value = 99 << 10, kDriverOk;
    default:
      return *value = 1, kDriverOk;
  }
}
DOUBLE cuDevicePrimaryCtxSetFlags_v2(int, unsigned) { return kDriverOk; }
DOUBLE cuDevicePrimaryCtxRetain(void** context, int) { return *context = &settings, kDriverOk; }
DOUBLE cuDevicePrimaryCtxRelease_v2(int) { return kDriverOk; }
DOUBLE cuCtxSetCurrent(void*) { return kDriverOk; }
DOUBLE cuModuleLoadData(void** module, const void*) { return *module = &settings, settings.loadResult; }
DOUBLE cuModuleUnload(void*) { return kDriverOk; }
DOUBLE cuModuleGetFunction(void** function, void*, const char* name) {
  for (size_t k = 0; k < kKernelCount; k++) {
    if (strcmp(kKernelShapes[k].name, name) == 0) return *function = reinterpret_cast<void*>(k + 1), kDriverOk;
  }
  return 500;
}
DOUBLE cuFuncSetAttribute(void*, int, int) { return kDriverOk; }
DOUBLE cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  void* memory = nullptr;
  const int result = takeMemory(&memory, bytes);
  *address = reinterpret_cast<uint64_t>(memory);
  return result;
}
DOUBLE cuMemFree_v2(uint64_t address) { return free(reinterpret_cast<void*>(address)), kDriverOk; }
DOUBLE cuMemHostAlloc(void** memory, size_t bytes, unsigned) { return takeMemory(memory, bytes); }
DOUBLE cuMemFreeHost(void* memory) { return free(memory), kDriverOk; }
DOUBLE cuMemHostRegister_v2(void*, size_t, unsigned) {
  return settings.pins ? settings.pinnedCount++, kDriverOk : kDriverOutOfMemory;
}
DOUBLE cuMemHostUnregister(void*) { return settings.pinnedCount--, kDriverOk; }
DOUBLE cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void*) {
  settings.uploadedBytes += bytes;
  return memcpy(reinterpret_cast<void*>(to), from, bytes), kDriverOk;
}
DOUBLE cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void*) {
  memcpy(to, reinterpret_cast<const void*>(from), bytes);
  if (settings.corrupts) static_cast<uint8_t*>(to)[0] ^= 1;
  return kDriverOk;
}
DOUBLE cuMemcpy2DAsync_v2(const CopyOfRows* copy, void*) {
  if (copy->fromKind != MemoryKind::kDevice || copy->toKind != MemoryKind::kHost) return kLaunchFailed;
  for (size_t row = 0; row < copy->rowCount; row++) {
    const auto* from = reinterpret_cast<const uint8_t*>(copy->fromDevice) + row * copy->fromStride;
    memcpy(static_cast<uint8_t*>(copy->toHost) + row * copy->toStride, from, copy->rowBytes);
  }
  return kDriverOk;
}
DOUBLE cuStreamCreate(void** stream, unsigned) { return *stream = &settings, kDriverOk; }
DOUBLE cuStreamDestroy_v2(void*) { return kDriverOk; }
DOUBLE cuStreamSynchronize(void*) { return settings.launchesLeft == 0 ? kLaunchFailed : kDriverOk; }
DOUBLE cuStreamWaitEvent(void*, void*, unsigned) { return kDriverOk; }
DOUBLE cuEventCreate(void** event, unsigned) { return *event = &settings, kDriverOk; }
DOUBLE cuEventDestroy_v2(void*) { return kDriverOk; }
DOUBLE cuEventRecord(void*, void*) { return kDriverOk; }
DOUBLE cuEventElapsedTime(float* ms, void*, void*) { return *ms = 1, kDriverOk; }
DOUBLE cuGetErrorName(int, const char** name) { return *name = "CUDA_ERROR_OF_THE_DOUBLE", kDriverOk; }
DOUBLE cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned, unsigned, unsigned,
                      unsigned sharedBytes, void*, void** parameters, void**) {
  if (loses()) return kLaunchFailed;
  const auto kernel = static_cast<Kernel>(reinterpret_cast<uintptr_t>(function) - 1);
  const auto* jobs = *static_cast<const Job* const*>(parameters[0]);
  launchOnHost(kernel, blocks, sharedBytes, jobs, *static_cast<const uint32_t*>(parameters[1]),
               *static_cast<const uint32_t*>(parameters[2]));
  return kDriverOk;
}
