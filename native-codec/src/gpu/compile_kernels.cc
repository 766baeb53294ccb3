/**
 * Compiles the kernels with NVRTC, the compiler library of CUDA, which needs no GPU. It is a program of its own;
 * gpu.mjs runs it.
 *
 *     compile_kernels NVRTC FOLDER ARCHITECTURE OUTPUT
 *
 * NVRTC is the library's file and FOLDER has kernels.cu. An ARCHITECTURE sm_N gives machine code, compute_N gives PTX.
 */
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace {

using Program = struct ProgramOfNvrtc*;

[[noreturn]] void fail(const std::string& message) {
  fprintf(stderr, "%s\n", message.c_str());
  exit(1);
}

template <typename Function>
Function* load(void* library, const char* name) {
  void* symbol = dlsym(library, name);
  if (symbol == nullptr) fail(std::string("NVRTC has no ") + name);
  return reinterpret_cast<Function*>(symbol);
}

std::string textOf(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) fail("cannot read " + file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/** Reads a result of NVRTC, whose size and content two functions give. */
std::string resultOf(void* library, const char* sizeName, const char* name, Program program) {
  size_t bytes = 0;
  load<int(Program, size_t*)>(library, sizeName)(program, &bytes);
  std::string result(bytes, '\0');
  load<int(Program, char*)>(library, name)(program, result.data());
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) fail("usage: compile_kernels NVRTC FOLDER ARCHITECTURE OUTPUT");
  void* library = dlopen(argv[1], RTLD_NOW);
  if (library == nullptr) fail(dlerror());
  const std::string folder = argv[2], architecture = argv[3];
  const std::string source = textOf(folder + "/kernels.cu"), job = textOf(folder + "/job.h"),
                    simt = textOf(folder + "/simt.h");
  const char* texts[] = {job.c_str(), simt.c_str()};
  const char* names[] = {"gpu/job.h", "gpu/simt.h"};
  Program program = nullptr;
  load<int(Program*, const char*, const char*, int, const char* const*, const char* const*)>(
      library, "nvrtcCreateProgram")(&program, source.c_str(), "kernels.cu", 2, texts, names);
  const std::string architectureOption = "--gpu-architecture=" + architecture;
  const char* options[] = {architectureOption.c_str(), "--std=c++20", "-default-device"};
  const int failed = load<int(Program, int, const char* const*)>(library, "nvrtcCompileProgram")(program, 3, options);
  if (failed != 0) fail(resultOf(library, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog", program));
  const bool isPtx = architecture.starts_with("compute_");
  const std::string code = isPtx ? resultOf(library, "nvrtcGetPTXSize", "nvrtcGetPTX", program)
                                 : resultOf(library, "nvrtcGetCUBINSize", "nvrtcGetCUBIN", program);
  std::ofstream(argv[4], std::ios::binary) << code;
  return 0;
}
