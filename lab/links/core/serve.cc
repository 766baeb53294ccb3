// links-core serve: makes the hosts and carries their packets. It obeys lines on standard input and answers each with a
// line of JSON.
//
//   seed N
//     Comes before the first host.
//   host NAME ADDRESS MTU SERVER CONGESTION IDLE
//     Plans a host. ADDRESS is like 10.99.0.1. SERVER and IDLE are 0 or 1. CONGESTION "-" is the kernel's default.
//   up
//     Makes the hosts. Answer: {"hosts":{NAME:fd of its network namespace}, ...}.
//   set NAME up|down|backbone KEY=VALUE ...
//     Changes a pipe. KEY is a key of applySetting. Other settings stay.
//   begin
//     Resets the lateness of packets. Answer: {"nowNs":N}.
//   stats
//     Answers with the counters of all pipes.
//   samples NAME up|down|backbone
//     Answers with the pipe's history.
//
// The end of input ends it and every process in its PID namespace. There are two processes. The outer one prints
// {"pid":N} and waits; /proc/N/ns and /proc/N/fd lead into the namespaces.
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <memory>
#include <sstream>

#include "commands.h"
#include "emulator.h"
#include "system.h"

namespace links {
namespace {

constexpr uint32_t kRouterAddress = 0x0a6300fe;  // 10.99.0.254
constexpr Nanoseconds kSampleEvery = 50'000'000;
constexpr int kPacketsPerTurn = 64;
constexpr size_t kPacketBytesMax = kOffloadHeaderBytes + 65'536;

/** How late packets were handed over, in microseconds. Each power of two has four buckets. */
class Lateness {
 public:
  void add(Nanoseconds late) {
    const auto us = static_cast<uint64_t>(std::max<Nanoseconds>(0, late) / 1000);
    counts_[bucketOf(us)]++;
    count_++;
    maxUs_ = std::max(maxUs_, us);
  }
  /** The upper edge of the bucket that holds the quantile. */
  uint64_t quantileUs(double quantile) const {
    uint64_t below = 0;
    for (size_t bucket = 0; bucket < counts_.size(); bucket++) {
      below += counts_[bucket];
      if (below > 0 && static_cast<double>(below) >= quantile * static_cast<double>(count_))
        return std::min(maxUs_, upperEdge(bucket));
    }
    return maxUs_;
  }
  uint64_t maxUs() const { return maxUs_; }

 private:
  static size_t bucketOf(uint64_t us) {
    if (us < 4) return us;
    const int power = std::bit_width(us) - 1;
    return std::min<size_t>(127, static_cast<size_t>(power) * 4 + ((us >> (power - 2)) & 3));
  }
  static uint64_t upperEdge(size_t bucket) { return bucket < 8 ? bucket : ((bucket % 4 + 5) << (bucket / 4 - 2)); }

  std::array<uint64_t, 128> counts_{};
  uint64_t count_ = 0, maxUs_ = 0;
};

const char* directionName(size_t direction) {
  return direction == kUp ? "up" : direction == kDown ? "down" : "backbone";
}

class Server {
 public:
  int run();

 private:
  std::string obey(const std::string& line);
  std::string addHost(std::istringstream& words);
  std::string bringUp();
  std::string set(std::istringstream& words);
  std::string stats();
  std::string samples(std::istringstream& words);
  std::pair<size_t, Direction> pipeNamed(std::istringstream& words) const;
  void readCommands();
  void readPackets(size_t host, Direction by);
  int descriptor(size_t host, Direction by) const {
    return by == kBackbone ? network_[host].backboneFd : network_[host].tunFd;
  }
  void watch(int fd, uint64_t tag);
  void armTimer();

  uint64_t seed_ = 1;
  std::vector<NetworkHostOptions> planned_;
  std::vector<uint32_t> servers_;
  std::vector<NetworkHost> network_;
  std::unique_ptr<Emulator> emulator_;
  Lateness lateness_;
  bool realTime_ = false;
  int epoll_ = -1, timer_ = -1;
  Nanoseconds armedFor_ = kNever, nextSampleAt_ = kNever;
  std::string unread_;
  bool ended_ = false;
};

std::string Server::obey(const std::string& line) {
  std::istringstream words(line);
  std::string command;
  words >> command;
  if (command == "seed") {
    words >> seed_;
    return "{}";
  }
  if (command == "host") return addHost(words);
  if (command == "up") return bringUp();
  if (command == "set") return set(words);
  if (command == "stats") return stats();
  if (command == "samples") return samples(words);
  if (command == "begin") {
    lateness_ = {};
    return "{\"nowNs\":" + std::to_string(clockNow()) + "}";
  }
  throw Failure("unknown command \"" + command + "\"");
}

std::string Server::addHost(std::istringstream& words) {
  NetworkHostOptions host{};
  std::string address;
  bool server = false;
  words >> host.name >> address >> host.mtu >> server >> host.congestion >> host.slowStartAfterIdle;
  in_addr parsed{};
  if (words.fail() || inet_pton(AF_INET, address.c_str(), &parsed) != 1)
    throw Failure("host NAME ADDRESS MTU SERVER CONGESTION IDLE expected");
  host.address = ntohl(parsed.s_addr);
  if (host.congestion == "-") host.congestion.clear();
  planned_.push_back(host);
  if (server) servers_.push_back(host.address);
  return "{}";
}

std::string Server::bringUp() {
  if (emulator_) throw Failure("the hosts are up already");
  std::ostringstream names;
  for (const auto& host : planned_) {
    const in_addr address{htonl(host.address)};
    names << inet_ntoa(address) << " " << host.name << "\n";
  }
  mountPrivate(names.str());
  emulator_ = std::make_unique<Emulator>(
      seed_, kRouterAddress, [this](size_t host, Direction by, const Bytes& packet, Nanoseconds dueAt) {
        lateness_.add(clockNow() - dueAt);
        if (write(descriptor(host, by), packet.data(), packet.size()) < 0 && errno != EIO && errno != EINVAL)
          std::perror("links-core: write to TUN");
      });
  std::ostringstream out;
  for (size_t i = 0; i < planned_.size(); i++) {
    const uint32_t own = planned_[i].address;
    if (std::ranges::find(servers_, own) != servers_.end())
      std::ranges::copy_if(servers_, std::back_inserter(planned_[i].backbone),
                           [own](uint32_t other) { return other != own; });
    network_.push_back(createNetworkHost(planned_[i]));
    emulator_->addHost(planned_[i].name, planned_[i].address);
    watch(network_[i].tunFd, i * kDirections + kUp);
    if (network_[i].backboneFd >= 0) watch(network_[i].backboneFd, i * kDirections + kBackbone);
    out << (i == 0 ? "" : ",") << "\"" << planned_[i].name << "\":" << network_[i].namespaceFd;
  }
  realTime_ = takeRealTimePriority();
  nextSampleAt_ = clockNow() + kSampleEvery;
  return "{\"hosts\":{" + out.str() + "},\"realTime\":" + (realTime_ ? "true" : "false") + "}";
}

std::pair<size_t, Direction> Server::pipeNamed(std::istringstream& words) const {
  if (!emulator_) throw Failure("the hosts are not up");
  std::string name, direction;
  words >> name >> direction;
  for (size_t host = 0; host < emulator_->hosts().size(); host++) {
    if (emulator_->hosts()[host].name != name) continue;
    for (size_t d = 0; d < kDirections; d++)
      if (direction == directionName(d)) return {host, static_cast<Direction>(d)};
  }
  throw Failure("no such pipe: " + name + " " + direction);
}

std::string Server::set(std::istringstream& words) {
  const auto [host, direction] = pipeNamed(words);
  PipeSettings settings = emulator_->hosts()[host].pipes[direction]->settings();
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) throw Failure("KEY=VALUE expected, got \"" + word + "\"");
    applySetting(settings, word.substr(0, equals), std::stod(word.substr(equals + 1)));
  }
  emulator_->configure(host, direction, settings, clockNow());
  return "{}";
}

std::string Server::stats() {
  if (!emulator_) throw Failure("the hosts are not up");
  emulator_->advance(clockNow());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double cpu = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  std::ostringstream out;
  out << "{\"nowNs\":" << clockNow() << ",\"cpuSec\":" << cpu << ",\"realTime\":" << (realTime_ ? "true" : "false")
      << ",\"lateUs\":{\"p50\":" << lateness_.quantileUs(0.5) << ",\"p99\":" << lateness_.quantileUs(0.99)
      << ",\"max\":" << lateness_.maxUs() << "},\"hosts\":{";
  const char* hostComma = "";
  for (size_t i = 0; i < network_.size(); i++) {
    const Host& host = emulator_->hosts()[i];
    out << hostComma << "\"" << host.name << "\":{\"noRoutePackets\":" << host.noRoutePackets
        << ",\"interfaceDrops\":" << interfaceDrops(network_[i].statisticsFd);
    hostComma = ",";
    for (size_t direction = 0; direction < kDirections; direction++) {
      const PipeStats& pipe = host.pipes[direction]->stats();
      out << ",\"" << directionName(direction) << "\":{\"inPackets\":" << pipe.inPackets
          << ",\"inBytes\":" << pipe.inBytes << ",\"outPackets\":" << pipe.outPackets
          << ",\"outBytes\":" << pipe.outBytes << ",\"dropQueue\":" << pipe.dropQueue
          << ",\"dropLoss\":" << pipe.dropLoss << ",\"dropCut\":" << pipe.dropCut << ",\"dropMtu\":" << pipe.dropMtu
          << ",\"queueBytes\":" << host.pipes[direction]->queueBytes() << ",\"queueBytesMax\":" << pipe.queueBytesMax
          << "}";
    }
    out << "}";
  }
  out << "}}";
  return out.str();
}

std::string Server::samples(std::istringstream& words) {
  const auto [host, direction] = pipeNamed(words);
  std::ostringstream out;
  out << "{\"samples\":[";
  const char* comma = "";
  for (const Sample& sample : emulator_->samples(host, direction)) {
    out << comma << "[" << sample.at << "," << sample.queueBytes << "," << sample.queueBytesPeak << ","
        << sample.outBytes << "," << sample.dropPackets << "]";
    comma = ",";
  }
  out << "]}";
  return out.str();
}

void Server::readCommands() {
  char text[4096];
  const ssize_t length = read(STDIN_FILENO, text, sizeof text);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (length <= 0) {
    ended_ = true;
    return;
  }
  unread_.append(text, static_cast<size_t>(length));
  for (size_t at = unread_.find('\n'); at != std::string::npos; at = unread_.find('\n')) {
    std::string answer;
    try {
      answer = obey(unread_.substr(0, at));
    } catch (const std::exception& failure) {
      answer = "{\"error\":" + quoted(failure.what()) + "}";
    }
    std::printf("%s\n", answer.c_str());
    std::fflush(stdout);
    unread_.erase(0, at + 1);
  }
}

void Server::readPackets(size_t host, Direction by) {
  static uint8_t buffer[kPacketBytesMax];
  for (int packet = 0; packet < kPacketsPerTurn; packet++) {
    const ssize_t length = read(descriptor(host, by), buffer, sizeof buffer);
    if (length <= 0) return;
    const Nanoseconds now = clockNow();
    emulator_->receive(host, by, Bytes(buffer, buffer + length), now);
    emulator_->advance(now);
  }
}

void Server::watch(int fd, uint64_t tag) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = tag}};
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) < 0) failWithErrno("cannot watch a descriptor");
}

void Server::armTimer() {
  const Nanoseconds at = std::min(emulator_ ? emulator_->nextAt() : kNever, nextSampleAt_);
  if (at == armedFor_ && at > clockNow()) return;
  armedFor_ = at;
  itimerspec timer{};
  // Setting the timer again clears an unread expiry. A time in the past expires at once.
  if (at != kNever)
    timer.it_value = {.tv_sec = static_cast<time_t>(at / 1'000'000'000),
                      .tv_nsec = static_cast<long>(at % 1'000'000'000)};
  timerfd_settime(timer_, TFD_TIMER_ABSTIME, &timer, nullptr);
}

int Server::run() {
  constexpr uint64_t kTagTimer = ~uint64_t{0}, kTagCommands = kTagTimer - 1;
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
  watch(timer_, kTagTimer);
  watch(STDIN_FILENO, kTagCommands);
  while (!ended_) {
    armTimer();
    std::array<epoll_event, 64> events;
    const int count = epoll_wait(epoll_, events.data(), events.size(), -1);
    if (count < 0 && errno != EINTR) failWithErrno("cannot wait for packets");
    for (int i = 0; i < count; i++) {
      if (events[i].data.u64 == kTagCommands)
        readCommands();
      else if (events[i].data.u64 != kTagTimer)
        readPackets(events[i].data.u64 / kDirections, static_cast<Direction>(events[i].data.u64 % kDirections));
    }
    const Nanoseconds now = clockNow();
    if (emulator_) emulator_->advance(now);
    if (now >= nextSampleAt_) {
      emulator_->sample(now);
      nextSampleAt_ = now + kSampleEvery;
    }
  }
  return 0;
}

/** The outer process: prints the PID of the inner process and ends as that one does. */
int waitFor(pid_t child, int gate) {
  std::printf("{\"pid\":%d}\n", child);
  std::fflush(stdout);
  close(gate);
  close(STDIN_FILENO);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int serve() {
  dieWithParent();
  signal(SIGINT, SIG_IGN);  // a terminal sends it; only the program that started this one ends it
  signal(SIGPIPE, SIG_IGN);
  unshareNamespaces();
  int gate[2];
  if (pipe2(gate, O_CLOEXEC) < 0) failWithErrno("cannot make a pipe");
  const pid_t child = fork();
  if (child < 0) failWithErrno("cannot start a process");
  if (child > 0) return waitFor(child, gate[1]);
  dieWithParent();
  // The parent prints the first line and then closes the gate.
  close(gate[1]);
  char nothing;
  while (read(gate[0], &nothing, 1) < 0 && errno == EINTR) {
  }
  close(gate[0]);
  signal(SIGCHLD, SIG_IGN);  // orphans become children of this process, and the kernel reaps them
  return Server().run();
}

}  // namespace links
