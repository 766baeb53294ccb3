// Emulator: hosts around a core, each with three pipes, and the order in which packets pass them.
//   up        host to core        down      core to host
//   backbone  host to another server, past both access links; its packets have the header of an interface with
//   offloads,
//             so that one is up to 64 KB of a TCP stream and no MTU is looked at
// Pure, like Pipe: packets in by `receive`, time by `advance`, packets out through the function given at construction.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "pipe.h"

namespace links {

enum Direction { kUp, kDown, kBackbone, kDirections };

struct Host {
  std::string name;
  uint32_t address = 0;  // host byte order
  std::array<std::unique_ptr<Pipe>, kDirections> pipes;
  uint64_t noRoutePackets = 0;  // other protocols and destinations, multicast among them
};

/** One line of a pipe's history. */
struct Sample {
  Nanoseconds at;
  int64_t queueBytes, queueBytesPeak;
  uint64_t outBytes, dropPackets;
};

class Emulator {
 public:
  /** `dueAt` is the time at which the packet should reach `host`, by `down` or `backbone`: at most the `now` of the
   * call that delivers it. */
  using Deliver = std::function<void(size_t host, Direction by, const Bytes& packet, Nanoseconds dueAt)>;

  Emulator(uint64_t seed, uint32_t routerAddress, Deliver deliver);

  size_t addHost(std::string name, uint32_t address);
  std::vector<Host>& hosts() { return hosts_; }
  void configure(size_t host, Direction direction, const PipeSettings& settings, Nanoseconds now);

  /** A packet that `host` sent by `up` or `backbone`. */
  void receive(size_t host, Direction by, Bytes packet, Nanoseconds now);
  /** Does all that is due by `now`, in order of its time. */
  void advance(Nanoseconds now);
  /** When `advance` has something to do; kNever when nothing is on its way. */
  Nanoseconds nextAt() const { return events_.empty() ? kNever : events_.front().at; }

  /** Appends a sample to the history of every pipe that has a rate; the oldest half goes when it is full. */
  void sample(Nanoseconds now);
  const std::vector<Sample>& samples(size_t host, Direction direction) const {
    return samples_[host * kDirections + direction];
  }

 private:
  struct Event {
    Nanoseconds at;
    uint64_t order;  // equal times: first come, first served
    size_t pipe;     // host * kDirections + direction
    bool arrival;    // packet reaches the pipe's far end; otherwise the pipe's transmission ends
    Bytes packet;
    bool operator<(const Event& other) const { return at != other.at ? at > other.at : order > other.order; }
  };

  Pipe& pipeAt(size_t index) { return *hosts_[index / kDirections].pipes[index % kDirections]; }
  void admit(size_t pipe, Bytes packet, Nanoseconds now);
  void watchTransmission(size_t pipe);
  void push(Event event);
  void finishTransmission(size_t pipe, Nanoseconds now);
  void arrive(size_t pipe, Bytes packet, Nanoseconds now);

  uint64_t seed_;
  uint32_t routerAddress_;
  Deliver deliver_;
  std::vector<Host> hosts_;
  std::unordered_map<uint32_t, size_t> hostByAddress_;
  std::vector<Event> events_;  // a heap
  std::vector<std::vector<Sample>> samples_;
  uint64_t order_ = 0;
};

}  // namespace links
