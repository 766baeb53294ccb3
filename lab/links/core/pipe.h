// Pipe: one direction of a link. Its steps are those of a router: drop-tail queue, transmission at the rate, loss,
// delay with jitter. Pure: time arrives as nanoseconds, randomness from a seed. The emulator asks `finishAt` and calls
// `finish` at that time. A lost packet has used the link's capacity, as on a real medium. Rates count whole IP packets.
#pragma once
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>

#include "packet.h"

namespace links {

using Nanoseconds = int64_t;
constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

/** splitmix64 (Steele, Lea, Flood 2014): small, seedable, without correlations that a loss pattern could show. */
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  /** In [0, 1). */
  double uniform();
  /** Mean 0, standard deviation 1. */
  double normal();

 private:
  uint64_t state_;
};

enum class Distribution { uniform, normal };

struct PipeSettings {
  double rateBytesPerSec = 0;  // 0: unlimited, and without a queue
  int64_t queueBytes = 0;      // includes the packet in transmission
  Nanoseconds delay = 0;
  Nanoseconds jitter = 0;  // half the width of the uniform distribution, or the normal one's standard deviation
  Distribution distribution = Distribution::uniform;
  bool reorder = false;  // false: jitter never lets a packet overtake another
  // Gilbert-Elliott: one step for each packet. Plain random loss is lossGood with enterBad 0.
  double lossGood = 0;
  double lossBad = 1;
  double enterBad = 0;
  double leaveBad = 1;
  bool cut = false;
  uint32_t mtu = 1500;
  bool icmp = true;  // answer a too large packet that must not be fragmented
};

struct PipeStats {
  uint64_t inPackets = 0, inBytes = 0;
  uint64_t outPackets = 0, outBytes = 0;
  uint64_t dropQueue = 0, dropLoss = 0, dropCut = 0, dropMtu = 0;
  int64_t queueBytesMax = 0;
};

class Pipe {
 public:
  explicit Pipe(uint64_t seed) : random_(seed) {}

  const PipeSettings& settings() const { return settings_; }
  const PipeStats& stats() const { return stats_; }
  PipeStats& stats() { return stats_; }
  int64_t queueBytes() const { return queueBytes_; }

  /** A new rate holds for the rest of the packet in transmission; a cut discards the queue. */
  void configure(const PipeSettings& settings, Nanoseconds now);

  /** Takes a packet into the queue, or drops it and counts the cause. The emulator handles packets over the MTU. */
  void admit(Bytes packet, Nanoseconds now);

  /** When the packet in transmission has left; kNever if there is none. */
  Nanoseconds finishAt() const { return finishAt_; }

  struct Departure {
    Bytes packet;
    Nanoseconds deliverAt;
  };
  /** Call at finishAt. Starts the next transmission. Empty if the packet was lost on the way. */
  std::optional<Departure> finish();

  /** The highest queue since the last call. */
  int64_t takeQueueBytesPeak();

 private:
  void startTransmission(Nanoseconds now);
  bool lost();
  Nanoseconds delayOfPacket();

  PipeSettings settings_;
  PipeStats stats_;
  Random random_;
  std::deque<Bytes> queue_;
  int64_t queueBytes_ = 0;
  int64_t queueBytesPeak_ = 0;
  double bytesLeft_ = 0;  // of the packet in transmission, at transmissionAt_
  Nanoseconds transmissionAt_ = 0;
  Nanoseconds finishAt_ = kNever;
  Nanoseconds lastDeliverAt_ = 0;
  bool bad_ = false;
};

}  // namespace links
