// Emulator: hosts around a core, each with three pipes, and the order in which packets pass through them.
//   up        host to core
//   down      core to host
//   backbone  host to another server, past both access links
// Packets on the backbone have the header of an interface with offloads. Such a packet is up to 64 KB of a TCP stream,
// so its MTU is not checked. Pure, like Pipe: packets come in by `receive`, time by `advance`, and packets go out
// through the function given at construction.
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
  uint64_t noRoutePackets = 0;  // packets of other protocols or to other destinations
};

/** One line of a pipe's history. */
struct Sample {
  Nanoseconds at;
  int64_t queueBytes, queueBytesPeak;
  uint64_t outBytes, dropPackets;
};

class Emulator {
 public:
  /** `dueAt`: when the packet should reach `host` by `down` or `backbone`. It is not later than the `now` of the call
   * that delivers it. */
  using Deliver = std::function<void(size_t host, Direction by, const Bytes& packet, Nanoseconds dueAt)>;

  Emulator(uint64_t seed, uint32_t routerAddress, Deliver deliver);

  size_t addHost(std::string name, uint32_t address);
  std::vector<Host>& hosts() { return hosts_; }
  void configure(size_t host, Direction direction, const PipeSettings& settings, Nanoseconds now);

  /** A packet that `host` sent by `up` or `backbone`. */
  void receive(size_t host, Direction by, Bytes packet, Nanoseconds now);
  /** Handles all events that are due by `now`, in the order of their times. */
  void advance(Nanoseconds now);
  /** The time of the next event; kNever if nothing is on its way. */
  Nanoseconds nextAt() const { return events_.empty() ? kNever : events_.front().at; }

  /** Appends a sample to the history of every pipe with a rate. A full history loses its oldest half. */
  void sample(Nanoseconds now);
  const std::vector<Sample>& samples(size_t host, Direction direction) const {
    return samples_[host * kDirections + direction];
  }

 private:
  struct Event {
    Nanoseconds at;
    uint64_t order;  // decides between equal times
    size_t pipe;     // host * kDirections + direction
    bool arrival;    // true: packet reaches the pipe's end; false: its transmission ends
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
