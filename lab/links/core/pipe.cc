#include "pipe.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace links {

uint64_t Random::next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

double Random::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

void Pipe::configure(const PipeSettings& settings, Nanoseconds now) {
  if (finishAt_ != kNever && settings_.rateBytesPerSec > 0) {
    bytesLeft_ =
        std::max(0.0, bytesLeft_ - static_cast<double>(now - transmissionAt_) * 1e-9 * settings_.rateBytesPerSec);
  }
  settings_ = settings;
  if (settings_.cut) {
    stats_.dropCut += queue_.size();
    queue_.clear();
    queueBytes_ = 0;
    finishAt_ = kNever;
  }
  if (finishAt_ != kNever) startTransmission(now);
}

void Pipe::admit(Bytes packet, Nanoseconds now) {
  const auto bytes = static_cast<int64_t>(packet.size());
  stats_.inPackets++;
  stats_.inBytes += packet.size();
  if (settings_.cut) {
    stats_.dropCut++;
    return;
  }
  // An empty queue takes any packet. Otherwise a queue smaller than one packet would be a cut link.
  if (settings_.rateBytesPerSec > 0 && !queue_.empty() && queueBytes_ + bytes > settings_.queueBytes) {
    stats_.dropQueue++;
    return;
  }
  queueBytes_ += bytes;
  queueBytesPeak_ = std::max(queueBytesPeak_, queueBytes_);
  stats_.queueBytesMax = std::max(stats_.queueBytesMax, queueBytes_);
  queue_.push_back(std::move(packet));
  if (finishAt_ == kNever) {
    bytesLeft_ = static_cast<double>(bytes);
    startTransmission(now);
  }
}

void Pipe::startTransmission(Nanoseconds now) {
  transmissionAt_ = now;
  const double seconds = settings_.rateBytesPerSec > 0 ? bytesLeft_ / settings_.rateBytesPerSec : 0;
  finishAt_ = now + static_cast<Nanoseconds>(std::llround(seconds * 1e9));
}

std::optional<Pipe::Departure> Pipe::finish() {
  const Nanoseconds now = finishAt_;
  Bytes packet = std::move(queue_.front());
  queue_.pop_front();
  queueBytes_ -= static_cast<int64_t>(packet.size());
  finishAt_ = kNever;
  if (!queue_.empty()) {
    bytesLeft_ = static_cast<double>(queue_.front().size());
    startTransmission(now);
  }
  if (lost()) {
    stats_.dropLoss++;
    return std::nullopt;
  }
  Nanoseconds deliverAt = now + delayOfPacket();
  if (!settings_.reorder) deliverAt = std::max(deliverAt, lastDeliverAt_);
  lastDeliverAt_ = deliverAt;
  stats_.outPackets++;
  stats_.outBytes += packet.size();
  return Departure{std::move(packet), deliverAt};
}

bool Pipe::lost() {
  if (settings_.enterBad > 0 || bad_)
    bad_ = bad_ ? random_.uniform() >= settings_.leaveBad : random_.uniform() < settings_.enterBad;
  const double loss = bad_ ? settings_.lossBad : settings_.lossGood;
  return loss > 0 && random_.uniform() < loss;
}

Nanoseconds Pipe::delayOfPacket() {
  if (settings_.jitter == 0) return settings_.delay;
  const double draw = settings_.distribution == Distribution::normal ? random_.normal() : 2 * random_.uniform() - 1;
  return std::max<Nanoseconds>(
      0, settings_.delay + static_cast<Nanoseconds>(draw * static_cast<double>(settings_.jitter)));
}

int64_t Pipe::takeQueueBytesPeak() { return std::exchange(queueBytesPeak_, queueBytes_); }

}  // namespace links
