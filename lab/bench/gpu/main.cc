/**
 * Measures the GPU coder and the CPU coder of one machine. It prints a table and writes JSON. Every rate counts bytes
 * of coded output. Each kernel's output is compared with the reference engine before it is timed.
 *
 *     gpu-bench [--small] [--device-only] [--library FILE] [--json FILE]
 *
 * Where there is no GPU, it says so and measures the CPU alone. Exit status: 0 measured, 1 failed, 2 bad option.
 */
#include <cstring>
#include <thread>

#include "parts.h"

namespace tributary::bench {
namespace {

struct Options {
  bool isSmall = false;
  bool isDeviceOnly = false;
  const char* library = "libcuda.so.1";
  const char* json = nullptr;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; i++) {
    const bool hasValue = i + 1 < argc;
    if (strcmp(argv[i], "--small") == 0) {
      options.isSmall = true;
    } else if (strcmp(argv[i], "--device-only") == 0) {
      options.isDeviceOnly = true;
    } else if (strcmp(argv[i], "--library") == 0 && hasValue) {
      options.library = argv[++i];
    } else if (strcmp(argv[i], "--json") == 0 && hasValue) {
      options.json = argv[++i];
    } else {
      fprintf(stderr, "gpu bench: unknown option %s\n", argv[i]);
      return false;
    }
  }
  return true;
}

Scale scaleOf(bool isSmall) {
  if (isSmall)
    return {{{32, 1100}, {40, 300}}, {40, 300}, size_t{40} << 10, size_t{40} << 10, size_t{40} << 10, 1, 0.02};
  std::vector<Shape> shapes;
  for (const uint32_t symbolCount : {32u, 64u, 128u, 256u, 512u}) {
    for (const uint32_t symbolBytes : {1100u, 1400u, 4096u, 65536u}) shapes.push_back({symbolCount, symbolBytes});
  }
  return {shapes, {128, 4096}, size_t{256} << 20, size_t{256} << 20, size_t{2} << 20, 5, 0.3};
}

void addFacts(const gpu::DeviceFacts& device, Rows& rows) {
  rows.fact("GPU", device.name);
  rows.fact("compute capability",
            std::to_string(device.capability / 10) + "." + std::to_string(device.capability % 10));
  rows.fact("multiprocessors", std::to_string(device.multiprocessors));
  rows.fact("clock", std::to_string(device.clockKhz / 1000) + " MHz");
  rows.fact("CUDA of the driver", std::to_string(device.driverVersion));
}

int run(const Options& options) {
  const Scale scale = scaleOf(options.isSmall);
  Rows rows;
  gpu::Error error;
  const std::unique_ptr<gpu::Device> device = gpu::Device::open(error, {.library = options.library});
  rows.fact("CPU engine", engineName(*availableEngines().front()));
  rows.fact("CPU cores", std::to_string(std::thread::hardware_concurrency()));
  if (device == nullptr) {
    rows.fact("GPU", "none: " + error.message);
  } else {
    addFacts(device->facts(), rows);
  }
  printf("%-22s %-26s %5s %6s %10s\n", "what", "coder", "n", "bytes", "GB/s");
  if (device != nullptr) {
    measureCopies(device->context(), scale, rows);
    measureKernels(device->context(), scale, rows);
    if (!options.isDeviceOnly) measureHost(*device, options.library, scale, rows);
  }
  if (!options.isDeviceOnly) measureCpu(scale, rows);
  if (device != nullptr && !options.isDeviceOnly) measureBoth(*device, scale, rows);
  if (options.json != nullptr && !rows.writeJson(options.json)) {
    fprintf(stderr, "gpu bench: cannot write %s\n", options.json);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace tributary::bench

int main(int argc, char** argv) {
  tributary::bench::Options options;
  return tributary::bench::parse(argc, argv, options) ? tributary::bench::run(options) : 2;
}
