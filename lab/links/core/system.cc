#include "system.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

namespace links {
namespace {

constexpr char kInterface[] = "eth0",
               kBackboneInterface[] = "eth1";  // WebRTC avoids names like tun0, because they look like a VPN
constexpr uint32_t kBackboneMtu = 1500;
constexpr int kInterfaceQueuePackets = 20'000;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::string readText(const std::string& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void writeText(const std::string& file, const std::string& text) {
  Descriptor fd(open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (fd.get() < 0 || write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    failWithErrno("cannot write \"" + text + "\" to " + file);
  }
}

ifreq requestFor(const char* name) {
  ifreq request{};
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  return request;
}

void control(int fd, unsigned long operation, ifreq& request, const std::string& what) {
  if (ioctl(fd, operation, &request) < 0) failWithErrno(what);
}

void bringUp(int socketFd, const char* name) {
  ifreq request = requestFor(name);
  control(socketFd, SIOCGIFFLAGS, request, std::string("cannot read the state of ") + name);
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  control(socketFd, SIOCSIFFLAGS, request, std::string("cannot bring up ") + name);
}

int openTun(const char* name, bool offloads) {
  Descriptor fd(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) failWithErrno("links need /dev/net/tun (load the module tun, or give this user access)");
  ifreq request = requestFor(name);
  request.ifr_flags = IFF_TUN | IFF_NO_PI | (offloads ? IFF_VNET_HDR : 0);
  control(fd.get(), TUNSETIFF, request, "cannot create a TUN interface");
  if (offloads && ioctl(fd.get(), TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4) < 0)
    failWithErrno("cannot have segmentation offload on a TUN interface");
  const std::string disableIpv6 = std::string("/proc/sys/net/ipv6/conf/") + name + "/disable_ipv6";
  if (access(disableIpv6.c_str(), F_OK) == 0) writeText(disableIpv6, "1");
  return fd.release();
}

void configureInterface(int socketFd, const char* name, uint32_t mtu) {
  ifreq request = requestFor(name);
  request.ifr_mtu = static_cast<int>(mtu);
  control(socketFd, SIOCSIFMTU, request, "cannot set an MTU of " + std::to_string(mtu));
  request = requestFor(name);
  request.ifr_qlen = kInterfaceQueuePackets;
  ioctl(socketFd, SIOCSIFTXQLEN,
        &request);  // in a user namespace it stays at 500; interfaceDrops counts its drops
  bringUp(socketFd, name);
}

void setAddress(int socketFd, const NetworkHostOptions& options) {
  ifreq request = requestFor(kInterface);
  auto* address = reinterpret_cast<sockaddr_in*>(&request.ifr_addr);
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(options.address);
  control(socketFd, SIOCSIFADDR, request, "cannot set the address of " + options.name);
}

void append(Bytes& message, unsigned short type, const void* data, size_t bytes) {
  rtattr attribute{static_cast<unsigned short>(RTA_LENGTH(bytes)), type};
  const size_t at = message.size();
  message.resize(at + RTA_SPACE(bytes));
  std::memcpy(&message[at], &attribute, sizeof attribute);
  if (bytes > 0) std::memcpy(&message[at + RTA_LENGTH(0)], data, bytes);
}

/** Adds a route to `destination`, or the default route. The route sets the congestion control, because a namespace's
 * sysctl refuses algorithms that the machine restricts. */
void addRoute(const char* interface, std::optional<uint32_t> destination, const NetworkHostOptions& options) {
  Descriptor netlink(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (netlink.get() < 0) failWithErrno("cannot open a netlink socket");
  Bytes message(NLMSG_LENGTH(sizeof(rtmsg)), 0);
  auto* route = reinterpret_cast<rtmsg*>(&message[NLMSG_LENGTH(0)]);
  *route = {.rtm_family = AF_INET,
            .rtm_dst_len = static_cast<unsigned char>(destination ? 32 : 0),
            .rtm_src_len = 0,
            .rtm_tos = 0,
            .rtm_table = RT_TABLE_MAIN,
            .rtm_protocol = RTPROT_STATIC,
            .rtm_scope = RT_SCOPE_LINK,
            .rtm_type = RTN_UNICAST,
            .rtm_flags = 0};
  const uint32_t index = if_nametoindex(interface), source = htonl(options.address),
                 target = htonl(destination.value_or(0));
  append(message, RTA_OIF, &index, sizeof index);
  append(message, RTA_PREFSRC, &source, sizeof source);
  if (destination) append(message, RTA_DST, &target, sizeof target);
  if (!options.congestion.empty()) {
    Bytes metrics;
    append(metrics, RTAX_CC_ALGO, options.congestion.c_str(), options.congestion.size() + 1);
    append(message, RTA_METRICS, metrics.data(), metrics.size());
  }
  auto* head = reinterpret_cast<nlmsghdr*>(message.data());
  *head = {.nlmsg_len = static_cast<uint32_t>(message.size()),
           .nlmsg_type = RTM_NEWROUTE,
           .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK,
           .nlmsg_seq = 1,
           .nlmsg_pid = 0};
  struct {
    nlmsghdr head;
    nlmsgerr error;
  } answer{};
  if (send(netlink.get(), message.data(), message.size(), 0) < 0 || recv(netlink.get(), &answer, sizeof answer, 0) < 0)
    failWithErrno("cannot set a route");
  errno = -answer.error.error;
  if (answer.head.nlmsg_type == NLMSG_ERROR && errno != 0)
    failWithErrno(std::string("cannot set a route over ") + interface);
}

void refuseUnavailableCongestion(const NetworkHostOptions& options) {
  std::string available = readText("/proc/sys/net/ipv4/tcp_available_congestion_control");
  while (!available.empty() && available.back() == '\n') available.pop_back();
  std::stringstream names(available);
  for (std::string name; names >> name;)
    if (name == options.congestion) return;
  throw Failure("host " + options.name + ": this kernel has no TCP congestion control \"" + options.congestion +
                "\"; it offers: " + available);
}

}  // namespace

void failWithErrno(const std::string& what) { throw Failure(what + ": " + std::strerror(errno)); }

Nanoseconds clockNow() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Nanoseconds{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void dieWithParent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

bool unshareNamespaces() {
  constexpr int kOwn = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET;
  if (unshare(kOwn) == 0) return false;
  if (errno != EPERM)
    failWithErrno("cannot make namespaces (sysctls user.max_net_namespaces, user.max_pid_namespaces)");
  const std::string uid = std::to_string(geteuid()), gid = std::to_string(getegid());
  if (unshare(CLONE_NEWUSER | kOwn) < 0)
    failWithErrno(
        "links need root or user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone)");
  try {
    writeText("/proc/self/setgroups", "deny");
    writeText("/proc/self/uid_map", "0 " + uid + " 1");
    writeText("/proc/self/gid_map", "0 " + gid + " 1");
  } catch (const Failure& failure) {
    throw Failure(std::string("this system restricts user namespaces, run as root instead: ") + failure.what());
  }
  return true;
}

void mountPrivate(const std::string& hostsLines) {
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0)
    failWithErrno("cannot make mounts private (a system that restricts user namespaces?)");
  if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) < 0)
    failWithErrno("cannot mount /proc in the namespace (inside a container, run it privileged)");
  if (mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, nullptr) < 0)
    failWithErrno("cannot mount /dev/shm in the namespace");
  const std::string before = readText("/etc/hosts");
  std::ofstream("/dev/shm/hosts") << before << (before.empty() || before.back() == '\n' ? "" : "\n") << hostsLines;
  if (!before.empty() && mount("/dev/shm/hosts", "/etc/hosts", nullptr, MS_BIND, nullptr) < 0)
    failWithErrno("cannot put the hosts' names into /etc/hosts of the namespace");
}

NetworkHost createNetworkHost(const NetworkHostOptions& options) {
  if (unshare(CLONE_NEWNET) < 0) failWithErrno("cannot make a network namespace");
  Descriptor socketFd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socketFd.get() < 0) failWithErrno("cannot open a socket");
  bringUp(socketFd.get(), "lo");
  Descriptor tun(openTun(kInterface, false)),
      backbone(options.backbone.empty() ? -1 : openTun(kBackboneInterface, true));
  writeText("/proc/sys/net/ipv4/tcp_slow_start_after_idle", options.slowStartAfterIdle ? "1" : "0");
  writeText("/proc/sys/net/ipv4/tcp_no_metrics_save", "1");
  if (access("/proc/sys/net/ipv4/ping_group_range", F_OK) == 0) writeText("/proc/sys/net/ipv4/ping_group_range", "0 0");
  setAddress(socketFd.get(), options);
  configureInterface(socketFd.get(), kInterface, options.mtu);
  if (!options.congestion.empty()) refuseUnavailableCongestion(options);
  addRoute(kInterface, std::nullopt, options);
  if (!options.backbone.empty()) configureInterface(socketFd.get(), kBackboneInterface, kBackboneMtu);
  for (const uint32_t server : options.backbone) addRoute(kBackboneInterface, server, options);
  const int namespaceFd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  const int statisticsFd = open("/proc/thread-self/net/dev", O_RDONLY | O_CLOEXEC);
  if (namespaceFd < 0 || statisticsFd < 0) failWithErrno("cannot open the network namespace");
  return {namespaceFd, tun.release(), backbone.release(), statisticsFd};
}

uint64_t interfaceDrops(int statisticsFd) {
  char text[4096];
  const ssize_t length = pread(statisticsFd, text, sizeof text, 0);
  if (length <= 0) return 0;
  std::istringstream lines(std::string(text, static_cast<size_t>(length)));
  uint64_t drops = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos ||
        (line.find(kInterface) == std::string::npos && line.find(kBackboneInterface) == std::string::npos))
      continue;
    // Eight columns for received packets come first. Then for sent packets: bytes, packets, errors, drops.
    std::istringstream columns(line.substr(colon + 1));
    uint64_t value = 0;
    for (int column = 0; column < 12; column++) columns >> value;
    drops += value;
  }
  return drops;
}

bool takeRealTimePriority() {
  sched_param parameters{};
  sched_getparam(0, &parameters);
  parameters.sched_priority++;
  return sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters) == 0;
}

}  // namespace links
