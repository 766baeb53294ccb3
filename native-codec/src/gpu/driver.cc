/** Loads the driver. The library stays loaded until the process ends, because it does not support unloading. */
#include "gpu/driver.h"

#include <dlfcn.h>

namespace tributary::gpu {

std::string loadDriver(const char* file, Driver& driver) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  std::string missing;
#define TRIBUTARY_LOAD(member, symbol, parameters)                                   \
  driver.member = reinterpret_cast<decltype(driver.member)>(dlsym(library, symbol)); \
  if (driver.member == nullptr && missing.empty()) missing = std::string(file) + " has no " + symbol;
  TRIBUTARY_DRIVER_FUNCTIONS(TRIBUTARY_LOAD)
#undef TRIBUTARY_LOAD
  return missing;
}

}  // namespace tributary::gpu
