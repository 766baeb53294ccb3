/** The lane of a GPU pool: one thread gives the device all tasks that wait, several at a time. It knows no Node. */
#ifndef TRIBUTARY_ADDON_GPU_H_
#define TRIBUTARY_ADDON_GPU_H_

#include <string>

#include "addon_executor.h"
#include "gpu/device.h"

namespace tributary::addon {

/** Returns nullptr, with the reason in `error`, if there is no usable GPU. */
std::unique_ptr<gpu::Device> openDevice(const std::string& library, gpu::Error& error);

class GpuLane final : public TaskLane {
 public:
  /** Calls `notify` on its thread, at most once between two `collect`s. */
  GpuLane(std::unique_ptr<gpu::Device> device, std::function<void()> notify);
  GpuLane(const GpuLane&) = delete;
  GpuLane& operator=(const GpuLane&) = delete;
  ~GpuLane() override;

  bool post(Task* task) override;
  bool withdraw(Task* task) override;
  Task* collect() override;
  void drain() override;
  /** The device's name, or after its loss the reason. */
  std::string state();
  /** Pins memory until the lane ends. */
  gpu::Error pin(std::span<uint8_t> memory) { return device_->pin(memory); }

 private:
  void work();
  void compute(const std::vector<Task*>& tasks);

  const std::unique_ptr<gpu::Device> device_;
  const std::function<void()> notify_;
  std::mutex mutex_;
  std::condition_variable posted_;
  std::condition_variable finished_;
  std::deque<Task*> waiting_;
  Task* firstDone_ = nullptr;
  Task* lastDone_ = nullptr;
  bool running_ = false;
  bool notified_ = false;
  bool stopping_ = false;
  /** Why the device is lost; empty before that. */
  std::string lost_;
  std::thread thread_;
};

}  // namespace tributary::addon

#endif  // TRIBUTARY_ADDON_GPU_H_
