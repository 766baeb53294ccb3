/**
 * The threads that run batches. The pools of all environments (main thread and workers) share one set, so that ten
 * workers on eight cores make eight threads and not eighty. A lane is the queue of one pool, and lanes take turns.
 * Threads start when they are needed and end with the last lane. This file knows no JavaScript.
 */
#ifndef TRIBUTARY_ADDON_EXECUTOR_H_
#define TRIBUTARY_ADDON_EXECUTOR_H_

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tributary::gpu {
struct Task;
}

namespace tributary::addon {

/** Tasks with the same turn run one after another, in the order in which their lane got them. */
struct Turn {
  bool taken = false;
};

class Task {
 public:
  virtual ~Task() = default;
  /** Runs on a thread of the executor. */
  virtual void run() = 0;
  /** Adds the products that a GPU computes for it. */
  virtual void addProducts(std::vector<gpu::Task>& products) const = 0;
  /** Sets its outcome: the device did not compute its products. */
  virtual void loseDevice() = 0;
  /** Null if the task may run beside any other. */
  std::shared_ptr<Turn> turn;
  /** How much work it is, in a unit that all tasks of the lane share. */
  uint64_t work = 0;
  /** The task that finished after it, among those not yet collected. */
  Task* nextDone = nullptr;
};

/** Memory that a task uses while it is in flight. If one task writes it, no other may use it. */
struct Claim {
  const uint8_t* data = nullptr;
  size_t length = 0;
  bool writes = false;
};

/** Where the tasks of a pool run. The pool owns them; the lane only refers to them. */
class TaskLane {
 public:
  virtual ~TaskLane() = default;
  /** Queues a task. False if there is no thread and none starts. If it throws std::bad_alloc, nothing is queued. */
  virtual bool post(Task* task) = 0;
  /** Takes a waiting task back. True if it was still waiting, and so will not run. */
  virtual bool withdraw(Task* task) = 0;
  /** Returns the tasks that finished since the last call, linked by `nextDone`, or null. */
  virtual Task* collect() = 0;
  /** Forgets all waiting tasks. Returns when none is running. */
  virtual void drain() = 0;
};

class Lane;

class Executor {
 public:
  /** Returns the executor of the process. Makes it if there is none. */
  static std::shared_ptr<Executor> shared();
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  ~Executor();

  /**
   * Takes all claims and returns 0, or takes none and returns the bytes by which one overlaps another or a held one.
   * If it throws std::bad_alloc, it has taken none.
   */
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

/** The tasks of one pool on an executor's threads. */
class Lane final : public TaskLane {
 public:
  /** Runs at most `threads` tasks at once. Calls `notify` on any thread, at most once between two `collect`s. */
  Lane(std::shared_ptr<Executor> executor, size_t threads, std::function<void()> notify);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  /** Calls drain(). */
  ~Lane() override;

  bool post(Task* task) override;
  bool withdraw(Task* task) override;
  Task* collect() override;
  void drain() override;

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
  /** The finished tasks that are not collected, and when the first of them finished. */
  Task* firstDone_ = nullptr;
  Task* lastDone_ = nullptr;
  Clock::time_point firstDoneAt_;
  /** The speed of the task that finished last; 0 before the first one. */
  double secondsPerWork_ = 0;
  size_t running_ = 0;
  bool notified_ = false;
};

/** Blocks all signals while it lives. A thread that starts then leaves the signals to the main thread. */
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();

 private:
  sigset_t before_;
};

}  // namespace tributary::addon

#endif  // TRIBUTARY_ADDON_EXECUTOR_H_
