/** The kernels, run on the host: for tests, and for the driver's test double. */
#ifndef TRIBUTARY_GPU_KERNELS_HOST_H_
#define TRIBUTARY_GPU_KERNELS_HOST_H_

#include "gpu/context.h"

namespace tributary::gpu {

/** Runs a kernel. Its jobs' addresses are in host memory. Only productTensor has `segmentSources`. */
void launchOnHost(Kernel kernel, uint32_t blocks, uint32_t sharedBytes, const Job* jobs, uint32_t jobCount,
                  uint32_t segmentSources);

}  // namespace tributary::gpu

#endif  // TRIBUTARY_GPU_KERNELS_HOST_H_
