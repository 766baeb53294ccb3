// links-core selftest: checks the model's promises to the nanosecond, in simulated time and without a network.
#include <cmath>
#include <cstdio>
#include <vector>

#include "commands.h"
#include "emulator.h"

namespace links {
namespace {

constexpr Nanoseconds kMs = 1'000'000;
constexpr Nanoseconds kSecond = 1'000 * kMs;
constexpr uint32_t kClient = 0x0a630001, kOrigin = 0x0a630002, kProxy = 0x0a630003, kRouter = 0x0a6300fe;

int passed = 0, failed = 0;

void check(bool holds, const char* sentence) {
  (holds ? passed : failed)++;
  if (!holds) std::printf("FAILED: %s\n", sentence);
}

bool near(double got, double expected, double tolerance) { return std::abs(got - expected) <= tolerance; }

Bytes packetTo(uint32_t source, uint32_t destination, size_t bytes, bool dontFragment = true) {
  Bytes packet(bytes, 0);
  packet[0] = 0x45;
  packet[6] = dontFragment ? 0x40 : 0;
  for (int i = 0; i < 4; i++) {
    packet[12 + i] = static_cast<uint8_t>(source >> (24 - 8 * i));
    packet[16 + i] = static_cast<uint8_t>(destination >> (24 - 8 * i));
  }
  return packet;
}

/** Client, origin and proxy around a core. It keeps a list of deliveries. */
struct World {
  struct Delivery {
    size_t host;
    size_t bytes;
    Nanoseconds at;
    Bytes packet;
  };
  std::vector<Delivery> deliveries;
  Emulator emulator{1, kRouter, [this](size_t host, Direction, const Bytes& packet, Nanoseconds at) {
                      deliveries.push_back({host, packet.size(), at, packet});
                    }};
  size_t client = emulator.addHost("client", kClient);
  size_t origin = emulator.addHost("origin", kOrigin);
  size_t proxy = emulator.addHost("proxy1", kProxy);

  void set(size_t host, Direction direction, const PipeSettings& settings, Nanoseconds now = 0) {
    emulator.configure(host, direction, settings, now);
  }
  void send(size_t bytes, Nanoseconds now) { emulator.receive(proxy, kUp, packetTo(kProxy, kClient, bytes), now); }
  const PipeStats& stats(size_t host, Direction direction) { return emulator.hosts()[host].pipes[direction]->stats(); }
};

void testRateAndQueue() {
  World world;
  world.set(world.proxy, kUp, {.rateBytesPerSec = 1'000'000, .queueBytes = 100'000, .delay = 25 * kMs});
  for (int i = 0; i < 150; i++) world.send(1000, 0);
  world.emulator.advance(kSecond);
  check(world.deliveries.size() == 100,
        "queue: 100,000 bytes hold exactly 100 packets of 1,000, and the 101st is dropped");
  check(world.stats(world.proxy, kUp).dropQueue == 50, "queue: each dropped packet is counted");
  check(world.deliveries.front().at == 26 * kMs, "rate: 1,000 bytes at 1 MB/s and 25 ms delay arrive after 26 ms");
  check(world.deliveries.back().at == 125 * kMs,
        "rate: the last of a full 100 ms queue arrives after 100 ms and the delay");
}

void testRateChange() {
  World world;
  world.set(world.proxy, kUp, {.rateBytesPerSec = 1'000'000, .queueBytes = 10'000});
  world.send(1000, 0);
  world.send(1000, 0);
  world.set(world.proxy, kUp, {.rateBytesPerSec = 100'000, .queueBytes = 10'000}, kMs / 2);
  world.emulator.advance(kSecond);
  check(world.deliveries.size() == 2 && world.deliveries[0].at == kMs / 2 + 5 * kMs,
        "rate change: the other half of a packet goes at the new rate");
  check(world.deliveries.size() == 2 && world.deliveries[1].at == kMs / 2 + 15 * kMs,
        "rate change: the next packet goes at the new rate");
}

void testCut() {
  World world;
  world.set(world.proxy, kUp, {.rateBytesPerSec = 1'000'000, .queueBytes = 10'000, .delay = 10 * kMs});
  for (int i = 0; i < 5; i++) world.send(1000, 0);
  world.set(world.proxy, kUp, {.rateBytesPerSec = 1'000'000, .queueBytes = 10'000, .delay = 10 * kMs, .cut = true},
            3 * kMs / 2);
  world.send(1000, 2 * kMs);
  world.set(world.proxy, kUp, {.rateBytesPerSec = 1'000'000, .queueBytes = 10'000, .delay = 10 * kMs}, 5 * kMs);
  world.send(1000, 5 * kMs);
  world.emulator.advance(kSecond);
  check(world.deliveries.size() == 2 && world.deliveries[0].at == 11 * kMs,
        "cut: a packet that left before the cut arrives");
  check(world.deliveries.size() == 2 && world.deliveries[1].at == 16 * kMs,
        "cut: a link that is back starts with an empty queue");
  check(world.stats(world.proxy, kUp).dropCut == 5, "cut: the queue and later packets are counted as cut");
}

/** The share of lost packets, and the mean length of a run of losses. */
std::pair<double, double> measuredLoss(const PipeSettings& settings, uint64_t count) {
  Pipe pipe(7);
  pipe.configure(settings, 0);
  uint64_t lost = 0, runs = 0;
  bool before = false;
  for (uint64_t i = 0; i < count; i++) {
    pipe.admit(Bytes(40), static_cast<Nanoseconds>(i));
    const bool gone = !pipe.finish();
    lost += gone;
    runs += gone && !before;
    before = gone;
  }
  return {static_cast<double>(lost) / static_cast<double>(count),
          static_cast<double>(lost) / static_cast<double>(runs)};
}

void testLoss() {
  constexpr uint64_t kCount = 4'000'000;
  check(near(measuredLoss({.lossGood = 0.02}, kCount).first, 0.02, 0.02 * 0.02),
        "loss: 2 % within 2 % of that over 4,000,000 packets");
  check(near(measuredLoss({.lossGood = 0.02}, kCount).second, 1 / 0.98, 0.01),
        "loss: random losses come in runs of 1.02 packets");
  // The mean of Gilbert-Elliott is the share of time in the bad state, p / (p + r), times its loss.
  const auto [share, run] = measuredLoss({.lossBad = 1, .enterBad = 0.005, .leaveBad = 0.2}, kCount);
  check(near(share, 0.005 / 0.205, 0.02 * 0.005 / 0.205),
        "loss: Gilbert-Elliott with p 0.5 % and r 20 % loses 2.44 %, within 2 % of that");
  check(near(run, 5, 0.1), "loss: Gilbert-Elliott with r 20 % loses runs of five packets");
}

void testJitter() {
  constexpr int kCount = 200'000;
  const auto spread = [](Distribution distribution) {
    Pipe pipe(3);
    pipe.configure({.delay = 50 * kMs, .jitter = 10 * kMs, .distribution = distribution, .reorder = true}, 0);
    double sum = 0, squares = 0;
    for (int i = 0; i < kCount; i++) {
      pipe.admit(Bytes(40), i);
      const double ms = static_cast<double>(pipe.finish()->deliverAt - i) / kMs;
      sum += ms;
      squares += ms * ms;
    }
    const double mean = sum / kCount;
    return std::pair(mean, std::sqrt(squares / kCount - mean * mean));
  };
  const auto [uniformMean, uniformSd] = spread(Distribution::uniform);
  check(near(uniformMean, 50, 0.1) && near(uniformSd, 10 / std::sqrt(3), 0.1),
        "jitter: uniform +-10 ms has a standard deviation of 5.77 ms around the delay");
  const auto [normalMean, normalSd] = spread(Distribution::normal);
  check(near(normalMean, 50, 0.1) && near(normalSd, 10, 0.1),
        "jitter: normal with 10 ms has that standard deviation around the delay");

  World world;
  world.set(world.proxy, kUp, {.delay = 50 * kMs, .jitter = 40 * kMs});
  for (size_t i = 0; i < 500; i++) world.send(100 + i, static_cast<Nanoseconds>(i) * kMs);
  world.emulator.advance(2 * kSecond);
  bool inOrder = world.deliveries.size() == 500;
  for (size_t i = 0; i < world.deliveries.size(); i++) inOrder = inOrder && world.deliveries[i].bytes == 100 + i;
  check(inOrder, "jitter: packets keep their order unless reorder is set");
}

void testPaths() {
  World world;
  world.set(world.proxy, kUp, {.delay = 25 * kMs});
  world.set(world.client, kDown, {.delay = 5 * kMs});
  world.send(100, 0);
  Bytes offloaded = packetTo(kOrigin, kProxy, 40'000);
  offloaded.insert(offloaded.begin(), kOffloadHeaderBytes, 7);
  world.emulator.receive(world.origin, kBackbone, offloaded, 0);
  world.emulator.receive(world.origin, kBackbone, Bytes{7}, 0);
  world.emulator.receive(world.client, kUp, packetTo(kClient, 0xe00000fb, 100), 0);
  world.emulator.receive(world.client, kUp, Bytes{0x60, 0, 0, 0}, 0);
  world.emulator.advance(kSecond);
  check(world.deliveries.size() == 2 && world.deliveries[0].host == world.proxy && world.deliveries[0].at == 0,
        "paths: servers reach each other over the backbone");
  check(world.deliveries.size() == 2 && world.deliveries[0].packet == offloaded &&
            world.emulator.hosts()[world.origin].noRoutePackets == 1,
        "paths: the backbone carries packets unchanged, with offload headers and without an MTU");
  check(world.deliveries.size() == 2 && world.deliveries[1].host == world.client && world.deliveries[1].at == 30 * kMs,
        "paths: proxy to client passes both access links");
  check(world.emulator.hosts()[world.client].noRoutePackets == 2,
        "paths: multicast and IPv6 are counted and go nowhere");
}

void testMtu() {
  World world;
  world.set(world.client, kDown, {.mtu = 1200});
  world.send(1200, 0);
  world.send(1201, kMs);
  world.emulator.advance(kSecond);
  check(world.deliveries.size() == 2 && world.deliveries[0].bytes == 1200, "mtu: a packet of exactly the MTU passes");
  const bool answered =
      world.deliveries.size() == 2 && world.deliveries[1].host == world.proxy && world.deliveries[1].bytes == 56;
  check(answered, "mtu: a packet one byte longer comes back as an ICMP message to its sender");
  if (answered) {
    const Bytes& icmp = world.deliveries[1].packet;
    check(icmp[20] == 3 && icmp[21] == 4 && icmp[26] == 1200 / 256 && icmp[27] == 1200 % 256,
          "mtu: the message names the MTU");
  }
  world.emulator.receive(world.proxy, kUp, packetTo(kProxy, kClient, 1201, false), kSecond);
  world.emulator.advance(2 * kSecond);
  check(world.deliveries.size() == 2 && world.stats(world.client, kDown).dropMtu == 2,
        "mtu: a longer packet that may be fragmented is dropped and counted");
}

}  // namespace

int selftest() {
  testRateAndQueue();
  testRateChange();
  testCut();
  testLoss();
  testJitter();
  testPaths();
  testMtu();
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace links
