// A wrong wall clock for the programs under test. Preloaded (LD_PRELOAD), it adds CLOCK_OFF_SEC seconds to the time
// that the C library tells, once the program has run for CLOCK_JUMP_AFTER_SEC seconds. The monotonic clock stays right.
// Linux only.
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

static time_t setting(const char* name) {
  const char* seconds = std::getenv(name);
  return seconds ? std::atol(seconds) : 0;
}

static time_t monotonic() {
  timespec at;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &at);
  return at.tv_sec;
}

static time_t off() {
  static const time_t jump = monotonic() + setting("CLOCK_JUMP_AFTER_SEC");
  return monotonic() < jump ? 0 : setting("CLOCK_OFF_SEC");
}

extern "C" int clock_gettime(clockid_t clock, timespec* at) noexcept {
  const int failed = static_cast<int>(syscall(SYS_clock_gettime, clock, at));
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += off();
  return failed;
}

extern "C" int gettimeofday(timeval* at, void*) noexcept {
  timespec now;
  const int failed = clock_gettime(CLOCK_REALTIME, &now);
  if (!failed) *at = {now.tv_sec, now.tv_nsec / 1000};
  return failed;
}

extern "C" time_t time(time_t* at) noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
