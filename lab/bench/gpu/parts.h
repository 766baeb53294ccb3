/** The parts of the GPU bench: what each measures is in its file. */
#ifndef TRIBUTARY_BENCH_GPU_PARTS_H_
#define TRIBUTARY_BENCH_GPU_PARTS_H_

#include <chrono>
#include <cstdlib>
#include <vector>

#include "engine.h"
#include "gpu/device.h"
#include "rows.h"
#include "tributary/codec.h"

namespace tributary::bench {

struct Shape {
  uint32_t symbolCount;
  uint32_t symbolBytes;
};

/** The size of a run. A small one only shows that everything works. */
struct Scale {
  std::vector<Shape> shapes;
  /** The shape of measurements at one shape. */
  Shape usual;
  /** Bytes of sources of a measurement on the device, from host to host, and on each CPU thread. */
  size_t deviceBytes;
  size_t hostBytes;
  size_t threadBytes;
  int repeats;
  double cpuSeconds;
};

inline double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/** Ends the program with the message of `error`, if there is one. */
inline void must(const gpu::Error& error) {
  if (!error) return;
  fprintf(stderr, "gpu bench: %s\n", error.message.c_str());
  exit(1);
}

void fillRandom(uint8_t* bytes, size_t count, uint64_t seed);

/** The distance of the rows that are compared with the reference engine, which is slow. */
inline uint32_t stepOfRows(Shape shape) {
  const size_t count = 1 + (size_t{4} << 20) / (size_t{shape.symbolCount} * shape.symbolBytes);
  return static_cast<uint32_t>(1 + (shape.symbolCount - 1) / count);
}

/** True if row `output` of a product with the coefficients of `seed` is what the reference engine gives. */
bool isCoded(const uint8_t* sources, size_t stride, Shape shape, uint32_t seed, const uint8_t* got);

/** On the device: copies, and every kernel without them (on_device.cc). */
void measureCopies(const gpu::Context& context, const Scale& scale, Rows& rows);
void measureKernels(const gpu::Context& context, const Scale& scale, Rows& rows);
/** From host memory to host memory (host.cc). */
void measureHost(gpu::Device& device, const char* library, const Scale& scale, Rows& rows);
/** All cores, with the fastest engine (host.cc). */
void measureCpu(const Scale& scale, Rows& rows);
/** Both coders on one queue (host.cc). */
void measureBoth(gpu::Device& device, const Scale& scale, Rows& rows);

}  // namespace tributary::bench

#endif  // TRIBUTARY_BENCH_GPU_PARTS_H_
