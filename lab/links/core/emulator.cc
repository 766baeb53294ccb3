#include "emulator.h"

#include <algorithm>
#include <utility>

namespace links {
namespace {

constexpr size_t kSamplesMax = 72'000;  // an hour at 50 ms

std::optional<Ipv4Header> headerOf(const Bytes& packet, size_t direction) {
  const std::span<const uint8_t> bytes(packet);
  return parseIpv4(direction == kBackbone ? bytes.subspan(std::min(kOffloadHeaderBytes, bytes.size())) : bytes);
}

}  // namespace

Emulator::Emulator(uint64_t seed, uint32_t routerAddress, Deliver deliver)
    : seed_(seed), routerAddress_(routerAddress), deliver_(std::move(deliver)) {}

size_t Emulator::addHost(std::string name, uint32_t address) {
  Host host{std::move(name), address, {}, 0};
  const size_t index = hosts_.size();
  for (size_t direction = 0; direction < kDirections; direction++) {
    host.pipes[direction] = std::make_unique<Pipe>(Random(seed_ + index * kDirections + direction).next());
  }
  hosts_.push_back(std::move(host));
  hostByAddress_[address] = index;
  samples_.resize(hosts_.size() * kDirections);
  return index;
}

void Emulator::configure(size_t host, Direction direction, const PipeSettings& settings, Nanoseconds now) {
  advance(now);
  const size_t pipe = host * kDirections + direction;
  pipeAt(pipe).configure(settings, now);
  watchTransmission(pipe);
}

void Emulator::receive(size_t host, Direction by, Bytes packet, Nanoseconds now) {
  advance(now);
  const auto header = headerOf(packet, by);
  const auto found = header ? hostByAddress_.find(header->destination) : hostByAddress_.end();
  if (found == hostByAddress_.end() || found->second == host) {
    hosts_[host].noRoutePackets++;
    return;
  }
  admit(host * kDirections + by, std::move(packet), now);
}

void Emulator::advance(Nanoseconds now) {
  while (!events_.empty() && events_.front().at <= now) {
    std::pop_heap(events_.begin(), events_.end());
    Event event = std::move(events_.back());
    events_.pop_back();
    if (event.arrival)
      arrive(event.pipe, std::move(event.packet), event.at);
    else
      finishTransmission(event.pipe, event.at);
  }
}

void Emulator::admit(size_t pipe, Bytes packet, Nanoseconds now) {
  Pipe& target = pipeAt(pipe);
  const PipeSettings& settings = target.settings();
  if (pipe % kDirections != kBackbone && packet.size() > settings.mtu) {
    target.stats().inPackets++;
    target.stats().inBytes += packet.size();
    target.stats().dropMtu++;
    const auto header = parseIpv4(packet);
    if (!settings.icmp || !header || !header->dontFragment) return;
    const auto source = hostByAddress_.find(header->source);
    if (source == hostByAddress_.end()) return;
    admit(source->second * kDirections + kDown, fragmentationNeeded(packet, *header, routerAddress_, settings.mtu),
          now);
    return;
  }
  const Nanoseconds before = target.finishAt();
  target.admit(std::move(packet), now);
  if (target.finishAt() != before) watchTransmission(pipe);
}

void Emulator::watchTransmission(size_t pipe) {
  const Nanoseconds at = pipeAt(pipe).finishAt();
  if (at != kNever) push({at, 0, pipe, false, {}});
}

void Emulator::push(Event event) {
  event.order = order_++;
  events_.push_back(std::move(event));
  std::push_heap(events_.begin(), events_.end());
}

void Emulator::finishTransmission(size_t pipe, Nanoseconds now) {
  Pipe& source = pipeAt(pipe);
  // A change of rate or a cut has moved the end. Another event in the heap has the new time.
  if (source.finishAt() != now) return;
  auto departure = source.finish();
  watchTransmission(pipe);
  if (departure) push({departure->deliverAt, 0, pipe, true, std::move(departure->packet)});
}

void Emulator::arrive(size_t pipe, Bytes packet, Nanoseconds now) {
  const size_t host = pipe / kDirections, direction = pipe % kDirections;
  if (direction == kDown) return deliver_(host, kDown, packet, now);
  const size_t destination = hostByAddress_.at(headerOf(packet, direction)->destination);
  if (direction == kBackbone) return deliver_(destination, kBackbone, packet, now);
  admit(destination * kDirections + kDown, std::move(packet), now);
}

void Emulator::sample(Nanoseconds now) {
  advance(now);
  for (size_t pipe = 0; pipe < samples_.size(); pipe++) {
    Pipe& source = pipeAt(pipe);
    auto& history = samples_[pipe];
    if (source.settings().rateBytesPerSec == 0 && history.empty()) continue;
    if (history.size() >= kSamplesMax) history.erase(history.begin(), history.begin() + kSamplesMax / 2);
    const PipeStats& stats = source.stats();
    const uint64_t drops = stats.dropQueue + stats.dropLoss + stats.dropCut + stats.dropMtu;
    history.push_back({now, source.queueBytes(), source.takeQueueBytesPeak(), stats.outBytes, drops});
  }
}

}  // namespace links
