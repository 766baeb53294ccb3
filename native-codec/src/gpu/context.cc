/** Opens a device, loads the kernels, and translates the driver's errors. */
#include "gpu/context.h"

#include "gpu/modules.h"

namespace tributary::gpu {
namespace {

/** Machine code of CUDA 12 runs on the drivers of CUDA 12.0 and later. */
constexpr int kDriverVersionMin = 12000;

std::string versionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

std::unique_ptr<Context> Context::open(Error& error, const char* library) {
  std::unique_ptr<Context> context(new Context);
  error = context->load(library);
  return error ? nullptr : std::move(context);
}

Context::~Context() {
  if (context_ == nullptr) return;
  driver_.setContext(context_);
  if (module_ != nullptr) driver_.unloadModule(module_);
  driver_.setContext(nullptr);
  driver_.releaseContext(device_);
}

Error Context::errorOf(int result, const char* action) const {
  if (result == kDriverOk) return {};
  const char* name = nullptr;
  if (driver_.errorName(result, &name) != kDriverOk || name == nullptr) name = "unknown error";
  const std::string message = std::string(action) + ": " + name + " (" + std::to_string(result) + ")";
  switch (result) {
    case kDriverOutOfMemory:
      return {Failure::kOutOfMemory, message};
    case kDriverNoDevice:
      return {Failure::kNoDevice, message};
    case kDriverNoBinary:
    case kDriverUnsupportedPtx:
      return {Failure::kOldDriver, message};
    default:
      return {Failure::kDeviceLost, message};
  }
}

Error Context::load(const char* library) {
  const std::string missing = loadDriver(library, driver_);
  if (!missing.empty()) return {Failure::kNoDriver, missing};
  if (Error error = errorOf(driver_.initialize(0), "cuInit")) return error;
  if (Error error = errorOf(driver_.driverVersion(&facts_.driverVersion), "cuDriverGetVersion")) return error;
  if (facts_.driverVersion < kDriverVersionMin) {
    return {Failure::kOldDriver, "the driver has CUDA " + versionText(facts_.driverVersion) +
                                     "; the kernels need CUDA " + versionText(kDriverVersionMin)};
  }
  int count = 0;
  if (Error error = errorOf(driver_.deviceCount(&count), "cuDeviceGetCount")) return error;
  if (count == 0) return {Failure::kNoDevice, "the driver finds no GPU"};
  if (Error error = errorOf(driver_.deviceAt(&device_, 0), "cuDeviceGet")) return error;
  char name[256] = {};
  int major = 0, minor = 0, multiprocessors = 0, clockKhz = 0, sharedBytes = 0, blockBytes = 0;
  const auto attribute = [this](int* value, DeviceAttribute which) {
    return errorOf(driver_.deviceAttribute(value, which, device_), "cuDeviceGetAttribute");
  };
  if (Error error = errorOf(driver_.deviceName(name, sizeof name - 1, device_), "cuDeviceGetName")) return error;
  if (Error error = attribute(&major, kCapabilityMajor)) return error;
  if (Error error = attribute(&minor, kCapabilityMinor)) return error;
  if (Error error = attribute(&multiprocessors, kMultiprocessorCount)) return error;
  if (Error error = attribute(&clockKhz, kClockKhz)) return error;
  if (Error error = attribute(&sharedBytes, kSharedBytesPerMultiprocessor)) return error;
  if (Error error = attribute(&blockBytes, kSharedBytesPerBlock)) return error;
  facts_.name = name;
  facts_.capability = static_cast<uint32_t>(major * 10 + minor);
  facts_.multiprocessors = static_cast<uint32_t>(multiprocessors);
  facts_.clockKhz = static_cast<uint32_t>(clockKhz);
  // Two blocks share a multiprocessor. The driver keeps 1 KB of each block's memory.
  const uint32_t bytes = static_cast<uint32_t>(std::min(sharedBytes / 2 - 1024, blockBytes));
  segmentSourcesMax_ = bytes / kTensorSourceBytes / kWordSources * kWordSources;
  return loadKernels();
}

Error Context::loadKernels() {
  // A thread that waits for the device sleeps, so that the CPU coder has its core. The result does not matter: if
  // another library of the process has the context already, its flags hold.
  constexpr unsigned kBlockingSync = 4;
  driver_.setContextFlags(device_, kBlockingSync);
  if (Error error = errorOf(driver_.retainContext(&context_, device_), "cuDevicePrimaryCtxRetain")) return error;
  if (Error error = attach()) return error;
  const Module module = moduleFor(facts_.capability);
  if (module.image == nullptr) {
    return {Failure::kOldDriver, "the kernels do not run on compute capability " +
                                     std::to_string(facts_.capability / 10) + "." +
                                     std::to_string(facts_.capability % 10)};
  }
  if (Error error = errorOf(driver_.loadModule(&module_, module.image), "cuModuleLoadData")) return error;
  for (size_t k = 0; k < kKernelCount; k++) {
    const KernelShape& shape = kKernelShapes[k];
    if (Error error = errorOf(driver_.getFunction(&functions_[k], module_, shape.name), shape.name)) return error;
    const uint32_t bytes =
        k == static_cast<size_t>(Kernel::kProductTensor) ? segmentSourcesMax_ * kTensorSourceBytes : shape.sharedBytes;
    // A chip with less shared memory does not run productTables, which only benches call.
    const int result = driver_.setFunctionAttribute(functions_[k], kDynamicSharedBytesMax, static_cast<int>(bytes));
    if (result != kDriverOk && k != static_cast<size_t>(Kernel::kProductTables)) return errorOf(result, shape.name);
  }
  return {};
}

Error Context::attach() const { return errorOf(driver_.setContext(context_), "cuCtxSetCurrent"); }

uint32_t Context::segmentSources(uint32_t sourceCountMax) const {
  return std::min(segmentSourcesMax_, ceilDivide(sourceCountMax, kWordSources) * kWordSources);
}

Error Context::launch(Kernel kernel, StreamHandle stream, uint32_t blocks, DeviceAddress jobs, uint32_t jobCount,
                      uint32_t segmentSources) const {
  const KernelShape& shape = shapeOf(kernel);
  const bool isTensor = kernel == Kernel::kProductTensor;
  uint32_t high = 65536;
  void* parameters[] = {&jobs, &jobCount, &segmentSources, &high};
  const uint32_t sharedBytes = isTensor ? segmentSources * kTensorSourceBytes : shape.sharedBytes;
  return errorOf(driver_.launch(functions_[static_cast<size_t>(kernel)], blocks, 1, 1, shape.threads, 1, 1, sharedBytes,
                                stream, parameters, nullptr),
                 shape.name);
}

}  // namespace tributary::gpu
