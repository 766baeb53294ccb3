/** Executor: one mutex for all lanes. A batch takes tens of microseconds; the lock is held for less than one. */
#include "addon_executor.h"

#include <algorithm>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

namespace tributary::addon {
namespace {

/** These two are never destroyed, because process.exit() joins no thread and threads may still use them. */
std::mutex& sharedMutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}
std::weak_ptr<Executor>& sharedExecutor() {
  static std::weak_ptr<Executor>& executor = *new std::weak_ptr<Executor>;
  return executor;
}

/**
 * To wake a sleeping event loop costs the waking thread microseconds, twenty in a virtual machine. So finished tasks
 * are reported together, at one of two moments: when the lane has less work left than the loop takes to wake, settle
 * and submit (kLoopSeconds), or before the first of them has waited for kReportDelaySeconds.
 */
constexpr double kLoopSeconds = 120e-6;
constexpr double kReportDelaySeconds = 1e-3;

/** The bytes that two claims share, if one of them writes. */
size_t overlap(const Claim& a, const Claim& b) {
  if (!a.writes && !b.writes) return 0;
  const auto from = std::max(reinterpret_cast<uintptr_t>(a.data), reinterpret_cast<uintptr_t>(b.data));
  const auto to =
      std::min(reinterpret_cast<uintptr_t>(a.data) + a.length, reinterpret_cast<uintptr_t>(b.data) + b.length);
  return to > from ? to - from : 0;
}

}  // namespace

BlockedSignals::BlockedSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

BlockedSignals::~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::shared_ptr<Executor> Executor::shared() {
  const std::lock_guard lock(sharedMutex());
  std::shared_ptr<Executor> executor = sharedExecutor().lock();
  if (executor == nullptr) {
    executor = std::make_shared<Executor>();
    sharedExecutor() = executor;
  }
  return executor;
}

Executor::~Executor() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  posted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

size_t Executor::claim(const std::vector<Claim>& claims) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < claims.size(); i++) {
    size_t bytes = 0;
    for (const Claim& held : claims_) bytes = std::max(bytes, overlap(claims[i], held));
    for (size_t other = 0; other < i; other++) bytes = std::max(bytes, overlap(claims[i], claims[other]));
    if (bytes > 0) return bytes;
  }
  claims_.reserve(claims_.size() + claims.size());
  claims_.insert(claims_.end(), claims.begin(), claims.end());
  return 0;
}

void Executor::release(const std::vector<Claim>& claims) {
  const std::lock_guard lock(mutex_);
  for (const Claim& claim : claims) {
    const auto same = [&claim](const Claim& held) {
      return held.data == claim.data && held.length == claim.length && held.writes == claim.writes;
    };
    const auto found = std::find_if(claims_.begin(), claims_.end(), same);
    if (found == claims_.end()) continue;
    *found = claims_.back();
    claims_.pop_back();
  }
}

/** Throws std::system_error if the system gives no thread. */
void Executor::startThread() {
  const BlockedSignals blocked;
  threads_.reserve(threads_.size() + 1);
  threads_.emplace_back([this] { work(); });
}

void Executor::work() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    Lane* lane = nullptr;
    Task* task = take(lock, lane);
    if (task == nullptr) continue;
    const std::shared_ptr<Turn> turn = task->turn;
    if (turn != nullptr) turn->taken = true;
    lane->running_++;
    while (reportDue(lock, lane->secondsOf(task->work))) {
    }
    if (queued_ > 0 && waiting_ > 0) posted_.notify_one();
    lock.unlock();
    const Lane::Clock::time_point started = Lane::Clock::now();
    task->run();
    lock.lock();
    if (turn != nullptr) turn->taken = false;
    lane->finish(task, started);
    finished_.notify_all();
  }
}

/** Takes the next task, from each lane in turn. If there is none, waits and returns nullptr. */
Task* Executor::take(std::unique_lock<std::mutex>& lock, Lane*& lane) {
  for (size_t tried = 0; tried < lanes_.size(); tried++) {
    lane = lanes_[nextLane_++ % lanes_.size()];
    if (Task* task = lane->next(); task != nullptr) return task;
  }
  if (reportDue(lock, std::numeric_limits<double>::infinity())) return nullptr;
  waiting_++;
  posted_.wait(lock);
  waiting_--;
  return nullptr;
}

/**
 * Reports one lane, if one is due. A thread calls this before it is busy for `nextSeconds` or sleeps. It releases the
 * lock to notify, because the loop that wakes takes the lock at once. Returns true if it reported a lane.
 */
bool Executor::reportDue(std::unique_lock<std::mutex>& lock, double nextSeconds) {
  const Lane::Clock::time_point now = Lane::Clock::now();
  const auto due =
      std::find_if(lanes_.begin(), lanes_.end(), [&](Lane* lane) { return lane->isReportDue(nextSeconds, now); });
  if (due == lanes_.end()) return false;
  Lane* const lane = *due;
  lane->notified_ = true;
  lane->running_++;  // The lane must live until it is notified.
  lock.unlock();
  lane->notify_();
  lock.lock();
  lane->running_--;
  finished_.notify_all();
  return true;
}

Lane::Lane(std::shared_ptr<Executor> executor, size_t threads, std::function<void()> notify)
    : executor_(std::move(executor)), threads_(threads), notify_(std::move(notify)) {
  const std::lock_guard lock(executor_->mutex_);
  executor_->lanes_.push_back(this);
}

Lane::~Lane() {
  drain();
  const std::lock_guard lock(executor_->mutex_);
  std::erase(executor_->lanes_, this);
}

bool Lane::post(Task* task) {
  {
    const std::lock_guard lock(executor_->mutex_);
    const size_t most = (*std::max_element(executor_->lanes_.begin(), executor_->lanes_.end(), [](Lane* a, Lane* b) {
                          return a->threads_ < b->threads_;
                        }))->threads_;
    if (executor_->queued_ >= executor_->waiting_ && executor_->threads_.size() < most) {
      try {
        executor_->startThread();
      } catch (const std::system_error&) {
        if (executor_->threads_.empty()) return false;
      } catch (const std::bad_alloc&) {
        if (executor_->threads_.empty()) throw;
      }
    }
    waiting_.push_back(task);
    waitingWork_ += task->work;
    executor_->queued_++;
  }
  executor_->posted_.notify_one();
  return true;
}

bool Lane::withdraw(Task* task) {
  const std::lock_guard lock(executor_->mutex_);
  const bool waited = std::erase(waiting_, task) > 0;
  if (waited) {
    waitingWork_ -= task->work;
    executor_->queued_--;
  }
  if (firstDone_ != nullptr && !std::exchange(notified_, true)) notify_();
  return waited;
}

void Lane::finish(Task* task, Clock::time_point started) {
  const Clock::time_point now = Clock::now();
  running_--;
  task->nextDone = nullptr;
  if (firstDone_ == nullptr) {
    firstDone_ = task;
    firstDoneAt_ = now;
  } else {
    lastDone_->nextDone = task;
  }
  lastDone_ = task;
  if (task->work > 0)
    secondsPerWork_ = std::chrono::duration<double>(now - started).count() / static_cast<double>(task->work);
}

bool Lane::isReportDue(double nextSeconds, Clock::time_point now) const {
  if (firstDone_ == nullptr || notified_) return false;
  const double waitedSeconds = std::chrono::duration<double>(now - firstDoneAt_).count();
  const double leftSeconds = secondsOf(waitingWork_) / static_cast<double>(threads_);
  return leftSeconds < kLoopSeconds || waitedSeconds + nextSeconds > kReportDelaySeconds;
}

Task* Lane::collect() {
  const std::lock_guard lock(executor_->mutex_);
  notified_ = false;
  return std::exchange(firstDone_, nullptr);
}

void Lane::drain() {
  std::unique_lock lock(executor_->mutex_);
  executor_->queued_ -= waiting_.size();
  waiting_.clear();
  waitingWork_ = 0;
  executor_->finished_.wait(lock, [this] { return running_ == 0; });
}

/** Takes the first task that may run now, or returns nullptr. */
Task* Lane::next() {
  if (running_ >= threads_) return nullptr;
  const auto mayRun = [](const Task* task) { return task->turn == nullptr || !task->turn->taken; };
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), mayRun);
  if (found == waiting_.end()) return nullptr;
  Task* const task = *found;
  waiting_.erase(found);
  waitingWork_ -= task->work;
  executor_->queued_--;
  return task;
}

}  // namespace tributary::addon
