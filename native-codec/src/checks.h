/** Argument checks for the coders. Each returns a Status that names the argument, its value and the limit. */
#ifndef TRIBUTARY_CHECKS_H_
#define TRIBUTARY_CHECKS_H_

#include "tributary/codec.h"

/** Returns from the caller with the status of `expression`, if that failed. */
#define TRIBUTARY_TRY(expression)                                     \
  do {                                                                \
    if (const Status tried = (expression); !tried.ok()) return tried; \
  } while (false)

namespace tributary {

inline Status misuse(const char* what, uint64_t got, uint64_t limit) {
  return {Status::Code::kMisuse, what, got, limit};
}

inline Status checkExact(const char* what, uint64_t got, uint64_t wanted) {
  return got == wanted ? Status{} : misuse(what, got, wanted);
}

inline Status checkRange(const char* what, uint64_t got, uint64_t least, uint64_t most) {
  if (got < least) return misuse(what, got, least);
  return got <= most ? Status{} : misuse(what, got, most);
}

inline Status checkShape(uint32_t symbolCount, uint32_t symbolBytes) {
  TRIBUTARY_TRY(checkRange("symbolCount", symbolCount, 1, kSymbolCountMax));
  return checkRange("symbolBytes", symbolBytes, 1, kSymbolBytesMax);
}

/** Cuts `bytes` into source symbols from `firstIndex` on, and pads the last with zeros. Defined in encoder.cc. */
Status setRows(detail::Rows& rows, uint32_t symbolCount, uint32_t symbolBytes, uint32_t firstIndex, ConstBytes bytes);

}  // namespace tributary

#endif  // TRIBUTARY_CHECKS_H_
