/** The results of the GPU bench: a table on the standard output and JSON in a file. */
#ifndef TRIBUTARY_BENCH_GPU_ROWS_H_
#define TRIBUTARY_BENCH_GPU_ROWS_H_

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace tributary::bench {

/** One figure. `gbPerSec` counts bytes of coded output (or copied bytes), in units of 10^9. */
struct Row {
  std::string what;
  std::string coder;
  uint32_t symbolCount = 0;
  uint32_t symbolBytes = 0;
  double gbPerSec = 0;
};

class Rows {
 public:
  void add(const Row& row) {
    rows_.push_back(row);
    printf("%-22s %-26s %5u %6u %10.3f\n", row.what.c_str(), row.coder.c_str(), row.symbolCount, row.symbolBytes,
           row.gbPerSec);
    fflush(stdout);
  }
  void fact(const std::string& name, const std::string& value) {
    facts_.push_back({name, value});
    printf("%s: %s\n", name.c_str(), value.c_str());
    fflush(stdout);
  }
  double rateOf(const std::string& what, const std::string& coder, uint32_t symbolCount, uint32_t symbolBytes) const {
    for (const Row& row : rows_) {
      if (row.what == what && row.coder == coder && row.symbolCount == symbolCount && row.symbolBytes == symbolBytes) {
        return row.gbPerSec;
      }
    }
    return 0;
  }
  bool writeJson(const char* file) const {
    FILE* out = fopen(file, "w");
    if (out == nullptr) return false;
    fprintf(out, "{\n  \"facts\": {");
    for (size_t i = 0; i < facts_.size(); i++) {
      fprintf(out, "%s\n    \"%s\": \"%s\"", i == 0 ? "" : ",", facts_[i].name.c_str(), facts_[i].value.c_str());
    }
    fprintf(out, "\n  },\n  \"rows\": [");
    for (size_t i = 0; i < rows_.size(); i++) {
      const Row& row = rows_[i];
      fprintf(out,
              "%s\n    {\"what\": \"%s\", \"coder\": \"%s\", \"symbolCount\": %u, \"symbolBytes\": %u, "
              "\"gbPerSec\": %.4f}",
              i == 0 ? "" : ",", row.what.c_str(), row.coder.c_str(), row.symbolCount, row.symbolBytes, row.gbPerSec);
    }
    fprintf(out, "\n  ]\n}\n");
    return fclose(out) == 0;
  }

 private:
  struct Fact {
    std::string name;
    std::string value;
  };
  std::vector<Row> rows_;
  std::vector<Fact> facts_;
};

}  // namespace tributary::bench

#endif  // TRIBUTARY_BENCH_GPU_ROWS_H_
