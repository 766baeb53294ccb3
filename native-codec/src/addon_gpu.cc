/** GpuLane: after a failure of the device, it computes nothing more, and every task loses its device. */
#include "addon_gpu.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace tributary::addon {
namespace {

/** The device cuts them into launches by their size. */
constexpr size_t kTasksAtOnce = 64;

}  // namespace

std::unique_ptr<gpu::Device> openDevice(const std::string& library, gpu::Error& error) {
  return gpu::Device::open(error, {.library = library.c_str()});
}

GpuLane::GpuLane(std::unique_ptr<gpu::Device> device, std::function<void()> notify)
    : device_(std::move(device)), notify_(std::move(notify)) {}

GpuLane::~GpuLane() {
  drain();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  posted_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool GpuLane::post(Task* task) {
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) {
      try {
        const BlockedSignals blocked;
        thread_ = std::thread([this] { work(); });
      } catch (const std::system_error&) {
        return false;
      }
    }
    waiting_.push_back(task);
  }
  posted_.notify_one();
  return true;
}

bool GpuLane::withdraw(Task* task) {
  const std::lock_guard lock(mutex_);
  return std::erase(waiting_, task) > 0;
}

Task* GpuLane::collect() {
  const std::lock_guard lock(mutex_);
  notified_ = false;
  return std::exchange(firstDone_, nullptr);
}

void GpuLane::drain() {
  std::unique_lock lock(mutex_);
  waiting_.clear();
  finished_.wait(lock, [this] { return !running_; });
}

std::string GpuLane::state() {
  const std::lock_guard lock(mutex_);
  return lost_.empty() ? device_->facts().name : lost_;
}

void GpuLane::work() {
  std::vector<Task*> tasks;
  std::unique_lock lock(mutex_);
  for (;;) {
    posted_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const auto end = waiting_.begin() + static_cast<ptrdiff_t>(std::min(kTasksAtOnce, waiting_.size()));
    tasks.assign(waiting_.begin(), end);
    waiting_.erase(waiting_.begin(), end);
    running_ = true;
    lock.unlock();
    compute(tasks);
    lock.lock();
    for (Task* task : tasks) {
      task->nextDone = nullptr;
      (firstDone_ == nullptr ? firstDone_ : lastDone_->nextDone) = task;
      lastDone_ = task;
    }
    if (!std::exchange(notified_, true)) {
      lock.unlock();
      notify_();
      lock.lock();
    }
    running_ = false;
    finished_.notify_all();
  }
}

/** `lost_` is written only on this thread, so it may be read here without the lock. */
void GpuLane::compute(const std::vector<Task*>& tasks) {
  std::vector<gpu::Task> products;
  std::vector<size_t> ends;
  for (const Task* task : tasks) {
    task->addProducts(products);
    ends.push_back(products.size());
  }
  const gpu::Outcome outcome = lost_.empty() ? device_->multiply(products) : gpu::Outcome{};
  for (size_t i = 0; i < tasks.size(); i++) {
    if (ends[i] > outcome.done) tasks[i]->loseDevice();
  }
  if (!outcome.error) return;
  const std::lock_guard lock(mutex_);
  lost_ = outcome.error.message.empty() ? "the device failed" : outcome.error.message;
}

}  // namespace tributary::addon
