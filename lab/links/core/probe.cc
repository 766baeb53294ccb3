// links-core probe: programs that measure a path from its ends, without asking the emulator.
//
//   udp-receive PORT QUIET_MS
//     Counts packets until a last packet, or until QUIET_MS of silence after the first.
//   udp-send ADDRESS PORT COUNT IP_BYTES PER_SEC
//     Sends numbered packets with time stamps. PER_SEC 0: as fast as the socket takes them.
//   tcp-receive PORT
//     Reads one connection to its end.
//   tcp-send ADDRESS PORT SECONDS [CONGESTION]
//     Fills one connection for SECONDS.
//
// Receivers print {"ready":true} when they listen. All print one line of JSON at the end. A delay is the time from the
// sender's send call to the receiver's kernel, so a receiver that runs late adds nothing. The UDP probes take real-time
// priority if they may, so that they measure the path and not the scheduler.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <sstream>
#include <vector>

#include "commands.h"
#include "system.h"

namespace links {
namespace {

constexpr size_t kHeaderBytes = 28;  // IPv4 and UDP
constexpr uint64_t kLast = ~uint64_t{0};
constexpr int kLastCopies = 20;
constexpr Nanoseconds kStampsOnAfter = 100'000'000;

struct Stamp {
  uint64_t sequence;
  Nanoseconds sentAt;  // CLOCK_REALTIME, like the kernel's receive stamps
};

Nanoseconds toNanoseconds(const timespec& time) { return Nanoseconds{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

Nanoseconds realTime() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return toNanoseconds(now);
}

sockaddr_in addressOf(const char* host, const char* port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(port)));
  if (inet_pton(AF_INET, host, &address.sin_addr) != 1) throw Failure(std::string("not an IPv4 address: ") + host);
  return address;
}

int openSocket(int type, const sockaddr_in& address, bool listening) {
  const int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
  if (fd < 0) failWithErrno("cannot open a socket");
  const int one = 1, bufferBytes = 64 << 20;
  if (listening) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (type == SOCK_DGRAM) {
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bufferBytes, sizeof bufferBytes);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bufferBytes, sizeof bufferBytes);
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
  }
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (listening && bind(fd, generic, sizeof address) < 0) failWithErrno("cannot bind");
  return fd;
}

void sleepUntil(Nanoseconds at) {
  const timespec time{static_cast<time_t>(at / 1'000'000'000), static_cast<long>(at % 1'000'000'000)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
}

void sayReady() {
  std::printf("{\"ready\":true}\n");
  std::fflush(stdout);
}

/** The packets that arrived, in the order of arrival. */
struct Arrivals {
  std::vector<double> delaysMs;
  std::vector<uint64_t> sequences;
  uint64_t ipBytes = 0;
  Nanoseconds firstAt = 0, lastAt = 0;
};

/** Reads one packet with the kernel's time. Returns false for the last one. */
bool receiveOne(int fd, Arrivals& arrivals) {
  uint8_t data[65'536], control[256];
  iovec part{data, sizeof data};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t length = recvmsg(fd, &message, 0);
  if (length < static_cast<ssize_t>(sizeof(Stamp))) return true;
  Stamp stamp;
  std::memcpy(&stamp, data, sizeof stamp);
  if (stamp.sequence == kLast) return false;
  Nanoseconds at = realTime();
  for (cmsghdr* item = CMSG_FIRSTHDR(&message); item; item = CMSG_NXTHDR(&message, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_TIMESTAMPNS) continue;
    timespec time;
    std::memcpy(&time, CMSG_DATA(item), sizeof time);
    at = toNanoseconds(time);
  }
  if (arrivals.sequences.empty()) arrivals.firstAt = at;
  arrivals.lastAt = at;
  arrivals.sequences.push_back(stamp.sequence);
  arrivals.delaysMs.push_back(static_cast<double>(at - stamp.sentAt) * 1e-6);
  arrivals.ipBytes += static_cast<uint64_t>(length) + kHeaderBytes;
  return true;
}

/** Counts the runs of missing numbers below the highest one that arrived. */
uint64_t lossRuns(std::vector<uint64_t> sequences) {
  std::sort(sequences.begin(), sequences.end());
  uint64_t runs = 0, expected = 0;
  for (const uint64_t sequence : sequences) {
    if (sequence > expected) runs++;
    expected = sequence + 1;
  }
  return runs;
}

void printArrivals(Arrivals arrivals) {
  const size_t count = arrivals.sequences.size();
  uint64_t overtaken = 0, highest = 0;
  for (const uint64_t sequence : arrivals.sequences) {
    if (sequence < highest) overtaken++;
    highest = std::max(highest, sequence);
  }
  auto& delays = arrivals.delaysMs;
  const double mean = count ? std::accumulate(delays.begin(), delays.end(), 0.0) / static_cast<double>(count) : 0;
  double squares = 0;
  for (const double delay : delays) squares += (delay - mean) * (delay - mean);
  std::sort(delays.begin(), delays.end());
  std::ostringstream quantiles;
  for (const int percent : {0, 1, 5, 25, 50, 75, 95, 99, 100}) {
    const size_t index = count ? std::min(count - 1, count * static_cast<size_t>(percent) / 100) : 0;
    quantiles << "\"p" << percent << "\":" << (count ? delays[index] : 0) << ",";
  }
  const uint64_t runs = lossRuns(std::move(arrivals.sequences));
  std::printf(
      "{\"packets\":%zu,\"ipBytes\":%lu,\"seconds\":%.6f,\"overtaken\":%lu,\"lossRuns\":%lu,\"delayMs\":{%s\"mean\":%."
      "6f,\"sd\":%.6f}}\n",
      count, arrivals.ipBytes, static_cast<double>(arrivals.lastAt - arrivals.firstAt) * 1e-9, overtaken, runs,
      quantiles.str().c_str(), mean, count ? std::sqrt(squares / static_cast<double>(count)) : 0);
}

int udpReceive(std::span<char*> words) {
  const int fd = openSocket(SOCK_DGRAM, addressOf("0.0.0.0", words[0]), true);
  const int quietMs = std::stoi(words[1]);
  takeRealTimePriority();
  // The kernel turns its receive stamps on with a short delay.
  sleepUntil(clockNow() + kStampsOnAfter);
  sayReady();
  Arrivals arrivals;
  pollfd wait{fd, POLLIN, 0};
  while (poll(&wait, 1, arrivals.sequences.empty() ? -1 : quietMs) > 0 && receiveOne(fd, arrivals)) {
  }
  printArrivals(std::move(arrivals));
  return 0;
}

int udpSend(std::span<char*> words) {
  const sockaddr_in address = addressOf(words[0], words[1]);
  const uint64_t count = std::stoull(words[2]);
  Bytes data(std::max<size_t>(sizeof(Stamp), std::stoul(words[3]) - kHeaderBytes), 0);
  const double perSec = std::stod(words[4]);
  const int fd = openSocket(SOCK_DGRAM, address, false);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0) failWithErrno("cannot connect");
  takeRealTimePriority();
  uint64_t failed = 0;
  const auto sendOne = [&](uint64_t sequence) {
    const Stamp stamp{sequence, realTime()};
    std::memcpy(data.data(), &stamp, sizeof stamp);
    if (send(fd, data.data(), data.size(), 0) < 0) failed++;
  };
  const Nanoseconds startedAt = clockNow();
  for (uint64_t sequence = 0; sequence < count; sequence++) {
    const Nanoseconds at =
        perSec > 0 ? startedAt + static_cast<Nanoseconds>(static_cast<double>(sequence) / perSec * 1e9) : 0;
    if (at > clockNow()) sleepUntil(at);
    sendOne(sequence);
  }
  const double seconds = static_cast<double>(clockNow() - startedAt) * 1e-9;
  // The last packet may be lost like any other, so several copies are sent over time.
  data.resize(sizeof(Stamp));
  for (int copy = 0; copy < kLastCopies; copy++) {
    sleepUntil(clockNow() + 20'000'000);
    sendOne(kLast);
  }
  std::printf("{\"packets\":%lu,\"failed\":%lu,\"seconds\":%.6f}\n", count, failed, seconds);
  return 0;
}

int tcpReceive(std::span<char*> words) {
  const int listener = openSocket(SOCK_STREAM, addressOf("0.0.0.0", words[0]), true);
  if (listen(listener, 1) < 0) failWithErrno("cannot listen");
  sayReady();
  const int fd = accept(listener, nullptr, nullptr);
  if (fd < 0) failWithErrno("cannot accept");
  static uint8_t data[1 << 18];
  uint64_t bytes = 0;
  Nanoseconds firstAt = 0, lastAt = 0;
  for (ssize_t length = read(fd, data, sizeof data); length > 0; length = read(fd, data, sizeof data)) {
    lastAt = clockNow();
    if (bytes == 0) firstAt = lastAt;
    bytes += static_cast<uint64_t>(length);
  }
  std::printf("{\"bytes\":%lu,\"seconds\":%.6f}\n", bytes, static_cast<double>(lastAt - firstAt) * 1e-9);
  return 0;
}

int tcpSend(std::span<char*> words) {
  const sockaddr_in address = addressOf(words[0], words[1]);
  const int fd = openSocket(SOCK_STREAM, address, false);
  if (words.size() > 3 &&
      setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, words[3], static_cast<socklen_t>(std::strlen(words[3]))) < 0)
    failWithErrno(std::string("cannot use congestion control ") + words[3]);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0) failWithErrno("cannot connect");
  static uint8_t data[1 << 17];
  const Nanoseconds endsAt = clockNow() + static_cast<Nanoseconds>(std::stod(words[2]) * 1e9);
  const timeval patience{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  uint64_t bytes = 0;
  while (clockNow() < endsAt) {
    const ssize_t length = send(fd, data, sizeof data, MSG_NOSIGNAL);
    if (length < 0 && errno != EAGAIN) break;
    bytes += static_cast<uint64_t>(std::max<ssize_t>(0, length));
  }
  char congestion[16]{};
  socklen_t size = sizeof congestion;
  getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, &size);
  tcp_info info{};
  size = sizeof info;
  getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
  std::printf("{\"bytes\":%lu,\"congestion\":\"%s\",\"mss\":%u,\"retransmits\":%u,\"rttMs\":%.3f}\n", bytes, congestion,
              info.tcpi_snd_mss, info.tcpi_total_retrans, info.tcpi_rtt * 1e-3);
  return 0;
}

}  // namespace

int probe(std::span<char*> arguments) {
  const std::string kind = arguments.empty() ? "" : arguments[0];
  const auto words = arguments.empty() ? arguments : arguments.subspan(1);
  if (kind == "udp-receive" && words.size() == 2) return udpReceive(words);
  if (kind == "udp-send" && words.size() == 5) return udpSend(words);
  if (kind == "tcp-receive" && words.size() == 1) return tcpReceive(words);
  if (kind == "tcp-send" && (words.size() == 3 || words.size() == 4)) return tcpSend(words);
  throw Failure(
      "usage: links-core probe udp-receive PORT QUIET_MS | udp-send ADDRESS PORT COUNT IP_BYTES PER_SEC | tcp-receive "
      "PORT | tcp-send ADDRESS PORT SECONDS [CONGESTION]");
}

}  // namespace links
