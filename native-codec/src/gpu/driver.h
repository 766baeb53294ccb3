/**
 * The functions of CUDA's driver API that this package uses, with declarations of its own. They are loaded at run time,
 * so neither the build nor the install needs CUDA.
 */
#ifndef TRIBUTARY_GPU_DRIVER_H_
#define TRIBUTARY_GPU_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace tributary::gpu {

/** Result codes of the driver. Every code but 0 is an error. */
enum DriverResult : int {
  kDriverOk = 0,
  kDriverOutOfMemory = 2,
  kDriverNoDevice = 100,
  kDriverNoBinary = 209,
  kDriverUnsupportedPtx = 222,
};

using DeviceAddress = uint64_t;
using ContextHandle = struct ContextOfDriver*;
using ModuleHandle = struct ModuleOfDriver*;
using FunctionHandle = struct FunctionOfDriver*;
using StreamHandle = struct StreamOfDriver*;
using EventHandle = struct EventOfDriver*;

/** Device attributes, by the driver's numbers. */
enum DeviceAttribute : int {
  kClockKhz = 13,
  kMultiprocessorCount = 16,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kSharedBytesPerMultiprocessor = 81,
  kSharedBytesPerBlock = 97,
};
/** Flags of pinned memory, of streams and of events. */
inline constexpr unsigned kPortable = 1;
inline constexpr unsigned kNonBlocking = 1;
inline constexpr unsigned kWithoutTiming = 2;

enum class MemoryKind : int { kHost = 1, kDevice = 2 };

/** A copy of `rowCount` rows of `rowBytes` bytes. The driver's fields, in its order; those for arrays stay 0. */
struct CopyOfRows {
  size_t fromX = 0, fromY = 0;
  MemoryKind fromKind;
  const void* fromHost = nullptr;
  DeviceAddress fromDevice = 0;
  void* fromArray = nullptr;
  size_t fromStride = 0;
  size_t toX = 0, toY = 0;
  MemoryKind toKind;
  void* toHost = nullptr;
  DeviceAddress toDevice = 0;
  void* toArray = nullptr;
  size_t toStride = 0;
  size_t rowBytes = 0;
  size_t rowCount = 0;
};

/** A function attribute: the most dynamic shared memory of a block. */
inline constexpr int kDynamicSharedBytesMax = 8;

/** X(member, symbol, parameters). */
#define TRIBUTARY_DRIVER_FUNCTIONS(X)                                                                              \
  X(initialize, "cuInit", (unsigned flags))                                                                        \
  X(driverVersion, "cuDriverGetVersion", (int* version))                                                           \
  X(deviceCount, "cuDeviceGetCount", (int* count))                                                                 \
  X(deviceAt, "cuDeviceGet", (int* device, int ordinal))                                                           \
  X(deviceName, "cuDeviceGetName", (char* name, int bytes, int device))                                            \
  X(deviceAttribute, "cuDeviceGetAttribute", (int* value, int attribute, int device))                              \
  X(setContextFlags, "cuDevicePrimaryCtxSetFlags_v2", (int device, unsigned flags))                                \
  X(retainContext, "cuDevicePrimaryCtxRetain", (ContextHandle * context, int device))                              \
  X(releaseContext, "cuDevicePrimaryCtxRelease_v2", (int device))                                                  \
  X(setContext, "cuCtxSetCurrent", (ContextHandle context))                                                        \
  X(loadModule, "cuModuleLoadData", (ModuleHandle * module, const void* image))                                    \
  X(unloadModule, "cuModuleUnload", (ModuleHandle module))                                                         \
  X(getFunction, "cuModuleGetFunction", (FunctionHandle * function, ModuleHandle module, const char* name))        \
  X(setFunctionAttribute, "cuFuncSetAttribute", (FunctionHandle function, int attribute, int value))               \
  X(allocate, "cuMemAlloc_v2", (DeviceAddress * address, size_t bytes))                                            \
  X(release, "cuMemFree_v2", (DeviceAddress address))                                                              \
  X(allocatePinned, "cuMemHostAlloc", (void** memory, size_t bytes, unsigned flags))                               \
  X(releasePinned, "cuMemFreeHost", (void* memory))                                                                \
  X(pin, "cuMemHostRegister_v2", (void* memory, size_t bytes, unsigned flags))                                     \
  X(unpin, "cuMemHostUnregister", (void* memory))                                                                  \
  X(copyToDevice, "cuMemcpyHtoDAsync_v2", (DeviceAddress to, const void* from, size_t bytes, StreamHandle stream)) \
  X(copyToHost, "cuMemcpyDtoHAsync_v2", (void* to, DeviceAddress from, size_t bytes, StreamHandle stream))         \
  X(copyRows, "cuMemcpy2DAsync_v2", (const CopyOfRows* copy, StreamHandle stream))                                 \
  X(createStream, "cuStreamCreate", (StreamHandle * stream, unsigned flags))                                       \
  X(destroyStream, "cuStreamDestroy_v2", (StreamHandle stream))                                                    \
  X(waitForStream, "cuStreamSynchronize", (StreamHandle stream))                                                   \
  X(waitForEvent, "cuStreamWaitEvent", (StreamHandle stream, EventHandle event, unsigned flags))                   \
  X(createEvent, "cuEventCreate", (EventHandle * event, unsigned flags))                                           \
  X(destroyEvent, "cuEventDestroy_v2", (EventHandle event))                                                        \
  X(recordEvent, "cuEventRecord", (EventHandle event, StreamHandle stream))                                        \
  X(elapsedMs, "cuEventElapsedTime", (float* ms, EventHandle start, EventHandle end))                              \
  X(errorName, "cuGetErrorName", (int result, const char** name))                                                  \
  X(launch, "cuLaunchKernel",                                                                                      \
    (FunctionHandle function, unsigned blocksX, unsigned blocksY, unsigned blocksZ, unsigned threadsX,             \
     unsigned threadsY, unsigned threadsZ, unsigned sharedBytes, StreamHandle stream, void** parameters,           \
     void** extra))

struct Driver {
#define TRIBUTARY_MEMBER(member, symbol, parameters) int(*member) parameters = nullptr;
  TRIBUTARY_DRIVER_FUNCTIONS(TRIBUTARY_MEMBER)
#undef TRIBUTARY_MEMBER
};

/** Loads the functions from the shared library `file`. Returns an empty string, or why that fails. */
std::string loadDriver(const char* file, Driver& driver);

}  // namespace tributary::gpu

#endif  // TRIBUTARY_GPU_DRIVER_H_
