/** The engine for AArch64. Every such processor has NEON: nibble tables, looked up by tbl, 16 bytes at a time. */
#if defined(__aarch64__)

#include <arm_neon.h>

#include "engine_block.h"
#include "gf256.h"

namespace tributary {
namespace {

struct Neon {
  using Vector = uint8x16_t;
  struct Split {
    uint8x16_t low, high;
  };
  struct Factor {
    uint8x16_t low, high;
  };
  static constexpr size_t kWidth = 16;
  static constexpr int kSourcesPerStep = 1;
  static constexpr int kOutputs = 4;
  static constexpr int kVectors[] = {0, 4, 4, 4, 4};
  static constexpr int kRowVectors = 4;

  static TRIBUTARY_INLINE Vector zero() { return vdupq_n_u8(0); }
  static TRIBUTARY_INLINE Vector load(const uint8_t* from) { return vld1q_u8(from); }
  static TRIBUTARY_INLINE void store(uint8_t* to, Vector vector) { vst1q_u8(to, vector); }
  static TRIBUTARY_INLINE Vector add(Vector a, Vector b) { return veorq_u8(a, b); }
  static TRIBUTARY_INLINE Split split(Vector vector) {
    return {vandq_u8(vector, vdupq_n_u8(0x0F)), vshrq_n_u8(vector, 4)};
  }
  static TRIBUTARY_INLINE Factor factor(uint8_t coefficient) {
    const gf256::NibbleTable& table = gf256::kNibbleTables.of[coefficient];
    return {load(table.low), load(table.high)};
  }
  static TRIBUTARY_INLINE Vector multiplyAdd(Vector sum, const Factor& factor, const Split& part) {
    return add(sum, add(vqtbl1q_u8(factor.low, part.low), vqtbl1q_u8(factor.high, part.high)));
  }
};

bool isSupported() { return true; }

}  // namespace

extern const Engine kEngineNeon = {
    "neon", isSupported, multiplyBlocked<Neon>, sumRowsBlocked<Neon>, combineRowsBlocked<Neon>, adoptRowBlocked<Neon>};

}  // namespace tributary

#endif
