/** How a test tells the driver's stand-in to fail. */
#ifndef TRIBUTARY_TEST_GPU_DRIVER_DOUBLE_H_
#define TRIBUTARY_TEST_GPU_DRIVER_DOUBLE_H_

#include <cstdint>

struct DoubleSettings {
  int initializeResult = 0;
  int driverVersion = 13000;
  int deviceCount = 1;
  int capability = 90;
  int loadResult = 0;
  /** True: the first byte of each download is wrong. */
  bool corrupts = false;
  /** After so many launches the device is lost. Negative: never. */
  int64_t launchesLeft = -1;
  /** A larger allocation fails. Negative: none fails. */
  int64_t bytesLeft = -1;
  /** False: the system pins no memory of the caller. */
  bool pins = true;
  /** Memory of the caller that is pinned now. */
  int64_t pinnedCount = 0;
  /** What was copied to the device so far. */
  uint64_t uploadedBytes = 0;
};

/** The settings of the loaded double. Get it by dlsym. */
extern "C" DoubleSettings* doubleSettings();

#endif  // TRIBUTARY_TEST_GPU_DRIVER_DOUBLE_H_
