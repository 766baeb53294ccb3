/** The kernels, compiled for the host. */
#include "gpu/kernels_host.h"

#include "gpu/kernels.cu"

namespace tributary::gpu {

void launchOnHost(Kernel kernel, uint32_t blocks, uint32_t sharedBytes, const Job* jobs, uint32_t jobCount,
                  uint32_t segmentSources) {
  const uint32_t threads = kernel == Kernel::kProductTables ? 512 : 128;
  host::launch(blocks, threads, sharedBytes, [=] {
    switch (kernel) {
      case Kernel::kDrawCoefficients:
        return drawCoefficients(jobs, jobCount);
      case Kernel::kExpandCoefficients:
        return expandCoefficients(jobs, jobCount);
      case Kernel::kProductTensor:
        return productTensor(jobs, jobCount, segmentSources, 65536);
      case Kernel::kProductTables:
        return productTables(jobs, jobCount);
      case Kernel::kProductMasks:
        return productMasks(jobs, jobCount);
    }
  });
}

}  // namespace tributary::gpu
