/**
 * How the native contenders are timed. An operation is repeated until a batch of it lasts as long as a scheduler rarely
 * cuts into (a fraction of a millisecond); the median batch of a slice of time is the slice's result. So what other
 * programs do to this machine reaches a minority of the batches and not the result.
 */
#ifndef TRIBUTARY_LAB_BENCH_TIMING_H_
#define TRIBUTARY_LAB_BENCH_TIMING_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

namespace bench {

using Clock = std::chrono::steady_clock;

inline double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

inline double medianOf(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

inline constexpr double kBatchSeconds = 300e-6;
inline constexpr size_t kBatchesMin = 5;

/** Repeats an operation; knows from earlier slices how many times make a batch. */
class Repeater {
 public:
  explicit Repeater(std::function<void()> operation) : operation_(std::move(operation)) {}

  /** Median seconds of one operation over a slice of `sliceSeconds`. */
  double measure(double sliceSeconds) {
    const Clock::time_point start = Clock::now();
    std::vector<double> batches;
    while (batches.size() < kBatchesMin || secondsSince(start) < sliceSeconds) {
      const double seconds = batch();
      if (seconds < kBatchSeconds / 2 && repeats_ < kRepeatsMax) {
        repeats_ *= 2;
        batches.clear();
      } else {
        batches.push_back(seconds / static_cast<double>(repeats_));
      }
    }
    return medianOf(batches);
  }

 private:
  static constexpr size_t kRepeatsMax = size_t{1} << 24;

  double batch() {
    const Clock::time_point start = Clock::now();
    for (size_t i = 0; i < repeats_; i++) operation_();
    return secondsSince(start);
  }

  std::function<void()> operation_;
  size_t repeats_ = 1;
};

/** For an operation that needs preparation each time: `lap` prepares, then returns the seconds of the timed part. */
inline double measureLaps(const std::function<double()>& lap, double sliceSeconds) {
  const Clock::time_point start = Clock::now();
  std::vector<double> laps;
  while (laps.size() < kBatchesMin || secondsSince(start) < sliceSeconds) laps.push_back(lap());
  return medianOf(laps);
}

}  // namespace bench

#endif  // TRIBUTARY_LAB_BENCH_TIMING_H_
