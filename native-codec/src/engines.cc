/** The engines of this build, and the ones among them that this processor can run. */
#include "engine.h"
#include "tributary/codec.h"

namespace tributary {
namespace {

/**
 * The engines, fastest first. A WebAssembly module has one engine, and its host chooses the module.
 * A build sets TRIBUTARY_HAS_GFNI512 if its compiler can build engine_gfni512.cc.
 */
const Engine* const kBuilt[] = {
#if defined(__wasm_simd128__)
    &kEngineSimd128,
#elif defined(__wasm__)
    &kEngineScalar,
#else
#if defined(TRIBUTARY_HAS_GFNI512)
    &kEngineGfni512,
#endif
#if defined(__x86_64__)
    &kEngineGfni256, &kEngineAvx2,      &kEngineSsse3,
#elif defined(__aarch64__)
    &kEngineNeon,
#endif
    &kEngineScalar,  &kEngineReference,
#endif
};

struct Available {
  const Engine* engines[sizeof(kBuilt) / sizeof(kBuilt[0])];
  size_t count = 0;

  Available() {
    for (const Engine* engine : kBuilt) {
      if (engine->isSupported()) engines[count++] = engine;
    }
  }
};

}  // namespace

void sumRowsBy(void (*multiply)(const Product&), uint8_t* out, const uint8_t* rows, size_t stride,
               const uint8_t* factors, size_t count, size_t bytes, bool fromEnd) {
  const uint8_t* sources[kSymbolCountMax];
  for (size_t s = 0; s < count; s++) sources[s] = rows + s * stride;
  multiply({&out, 1, sources, count, factors, count, bytes, nullptr, fromEnd});
}

const char* engineName(const Engine& engine) { return engine.name; }

std::span<const Engine* const> availableEngines() {
  static const Available available;
  return {available.engines, available.count};
}

const Engine* findEngine(std::string_view name) {
  for (const Engine* engine : availableEngines()) {
    if (name == engine->name) return engine;
  }
  return nullptr;
}

}  // namespace tributary
