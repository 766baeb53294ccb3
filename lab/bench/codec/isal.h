/**
 * ISA-L's erasure code functions, loaded from a shared library at run time: no headers, no link, no ISA-L needed to
 * build. Its signatures are those of isa-l/erasure_code.h; its field is ours (polynomial 0x11D).
 */
#ifndef TRIBUTARY_LAB_BENCH_ISAL_H_
#define TRIBUTARY_LAB_BENCH_ISAL_H_

#include <dlfcn.h>

#include <string>

namespace bench {

/** Functions of one path of the library: `best` is what its own dispatch chooses, others are named after its symbols.
 */
struct IsaL {
  using InitTables = void (*)(int sourceCount, int outputCount, unsigned char* matrix, unsigned char* tables);
  using EncodeData = void (*)(int bytes, int sourceCount, int outputCount, unsigned char* tables,
                              unsigned char** sources, unsigned char** outputs);
  using Invert = int (*)(unsigned char* matrix, unsigned char* inverse, int size);

  InitTables initTables = nullptr;
  EncodeData encodeData = nullptr;
  Invert invert = nullptr;

  bool complete() const { return initTables != nullptr && encodeData != nullptr && invert != nullptr; }
};

/** Whether this processor runs a path that is named, as `avx512_gfni`: called by name, it is not ISA-L that looks. */
inline bool runsHere(const std::string& path) {
  const auto names = [&path](const char* extension) { return path.find(extension) != std::string::npos; };
  if (names("avx512") &&
      !(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")))
    return false;
  if (names("avx2") && !__builtin_cpu_supports("avx2")) return false;
  return !names("gfni") || __builtin_cpu_supports("gfni");
}

/** Tables come in two forms: nibble tables, and bit matrices for the GFNI paths. None for a path that does not run
 * here. */
inline IsaL loadIsaL(void* library, const std::string& path) {
  const auto symbol = [library](const std::string& name) {
    return library == nullptr ? nullptr : dlsym(library, name.c_str());
  };
  const bool best = path == "best";
  const bool gfni = path.find("gfni") != std::string::npos;
  IsaL isal;
  if (!runsHere(path)) return isal;
  isal.initTables = reinterpret_cast<IsaL::InitTables>(symbol(best   ? "ec_init_tables"
                                                              : gfni ? "ec_init_tables_gfni"
                                                                     : "ec_init_tables_base"));
  isal.encodeData = reinterpret_cast<IsaL::EncodeData>(symbol(best ? "ec_encode_data" : "ec_encode_data_" + path));
  isal.invert = reinterpret_cast<IsaL::Invert>(symbol("gf_invert_matrix"));
  return isal;
}

}  // namespace bench

#endif  // TRIBUTARY_LAB_BENCH_ISAL_H_
