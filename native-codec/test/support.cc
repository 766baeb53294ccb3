/** Replaces the core's malloc and calloc, so that they fail when a test says so. */
#include "support.h"

namespace {

bool allocationFails() {
  using tributary::test::allocationsLeft;
  if (allocationsLeft < 0) return false;
  if (allocationsLeft == 0) return true;
  allocationsLeft--;
  return false;
}

}  // namespace

extern "C" {
void* __real_calloc(size_t count, size_t bytes);
void* __wrap_calloc(size_t count, size_t bytes) { return allocationFails() ? nullptr : __real_calloc(count, bytes); }
void* __real_malloc(size_t bytes);
void* __wrap_malloc(size_t bytes) { return allocationFails() ? nullptr : __real_malloc(bytes); }
}
