/**
 * The few words of CUDA that kernels.cu uses, for the GPU and for the host. On the host a thread of a block is a fiber,
 * and the operations of a warp wait until all its lanes have come: host_simt.h.
 */
#ifndef TRIBUTARY_GPU_SIMT_H_
#define TRIBUTARY_GPU_SIMT_H_

#if defined(__CUDACC_RTC__)

#define TRIBUTARY_KERNEL(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)
#define TRIBUTARY_DEVICE __device__ __forceinline__
#define TRIBUTARY_TABLE __device__ constexpr
#define TRIBUTARY_PRAGMA(text) _Pragma(#text)
#define TRIBUTARY_UNROLL(count) TRIBUTARY_PRAGMA(unroll count)

namespace tributary::gpu {

extern __shared__ uint4 blockMemory[];
TRIBUTARY_DEVICE uint4* sharedMemory() { return blockMemory; }
TRIBUTARY_DEVICE void waitForBlock() { __syncthreads(); }
TRIBUTARY_DEVICE uint32_t shuffleXor(uint32_t value, int mask) { return __shfl_xor_sync(0xFFFFFFFFu, value, mask); }
TRIBUTARY_DEVICE uint32_t bytePermute(uint32_t a, uint32_t b, uint32_t selector) { return __byte_perm(a, b, selector); }

/** d = (first ? 0 : d) + a x b, of 16 x 32 and 32 x 8 bytes: PTX mma.m16n8k32, whose manual gives the layout. */
template <bool first>
TRIBUTARY_DEVICE void multiplyTile(uint32_t (&d)[4], const uint32_t (&a)[4], uint2 b) {
  if constexpr (first) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%10, %10, %10, %10};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y), "r"(0));
  } else {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
  }
}

}  // namespace tributary::gpu

#else
#include "gpu/host_simt.h"
#endif

#endif  // TRIBUTARY_GPU_SIMT_H_
