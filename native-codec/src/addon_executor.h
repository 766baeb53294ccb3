/**
 * The threads that batches run on: one set for the whole process, shared by the pools of all its environments (main
 * thread and workers), so that ten workers on eight cores make eight threads and not eighty. Knows no JavaScript.
 * A lane is one pool's queue; lanes take turns. Threads start as they are needed and end with the last lane.
 */
#ifndef TRIBUTARY_ADDON_EXECUTOR_H_
#define TRIBUTARY_ADDON_EXECUTOR_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tributary::addon {

/** Tasks that have the same turn run one after another, in the order they were posted to their lane. */
struct Turn {
  bool taken = false;
};

class Task {
 public:
  virtual ~Task() = default;
  /** On some thread of the executor. */
  virtual void run() = 0;
  /** Null when the task may run beside any other. */
  std::shared_ptr<Turn> turn;
  /** What it will take, in any unit that is the same for all tasks of a lane. */
  uint64_t work = 0;
  /** The one that finished after it, among those not collected. */
  Task* nextDone = nullptr;
};

/** Memory that a task uses while it is in flight. Writing excludes all other use. */
struct Claim {
  const uint8_t* data = nullptr;
  size_t length = 0;
  bool writes = false;
};

class Lane;

class Executor {
 public:
  /** The process's executor, made when there is none. */
  static std::shared_ptr<Executor> shared();
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  ~Executor();

  /** Throws std::bad_alloc with nothing done. Takes all claims; or none, and returns the bytes by which one overlaps
   * another of them or one already held. */
  size_t claim(const std::vector<Claim>& claims);
  void release(const std::vector<Claim>& claims);

 private:
  friend class Lane;
  void work();
  Task* take(std::unique_lock<std::mutex>& lock, Lane*& lane);
  bool reportDue(std::unique_lock<std::mutex>& lock, double nextSeconds);
  void startThread();

  std::mutex mutex_;
  std::condition_variable posted_;
  std::condition_variable finished_;
  std::vector<std::thread> threads_;
  std::vector<Lane*> lanes_;
  std::vector<Claim> claims_;
  size_t nextLane_ = 0;
  size_t queued_ = 0;
  size_t waiting_ = 0;
  bool stopping_ = false;
};

/** One pool's tasks. Tasks stay their owner's; the lane only refers to them. */
class Lane {
 public:
  /** At most `threads` tasks run at once. `notify` is called on any thread, once until the next `collect`. */
  Lane(std::shared_ptr<Executor> executor, size_t threads, std::function<void()> notify);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  /** Drains. */
  ~Lane();

  /** False when there is no thread to run it and none can be started. Throws std::bad_alloc with nothing done. */
  bool post(Task* task);
  /** True when the task was still waiting: it will not run. */
  bool withdraw(Task* task);
  /** The tasks that finished since the last call, linked by `nextDone`; null when there are none. */
  Task* collect();
  /** Forgets what waits, returns when nothing runs. */
  void drain();

 private:
  friend class Executor;
  using Clock = std::chrono::steady_clock;
  Task* next();
  double secondsOf(uint64_t work) const { return static_cast<double>(work) * secondsPerWork_; }
  void finish(Task* task, Clock::time_point started);
  bool isReportDue(double nextSeconds, Clock::time_point now) const;

  const std::shared_ptr<Executor> executor_;
  const size_t threads_;
  const std::function<void()> notify_;
  std::deque<Task*> waiting_;
  uint64_t waitingWork_ = 0;
  /** Finished and not collected; when the first of them did. */
  Task* firstDone_ = nullptr;
  Task* lastDone_ = nullptr;
  Clock::time_point firstDoneAt_;
  /** Of the task that finished last; 0 before that. */
  double secondsPerWork_ = 0;
  size_t running_ = 0;
  bool notified_ = false;
};

}  // namespace tributary::addon

#endif  // TRIBUTARY_ADDON_EXECUTOR_H_
