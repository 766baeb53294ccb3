// What the emulator asks of Linux: namespaces, TUN interfaces, routes, clocks. Every call that fails throws a Failure
// whose text is one sentence for a person.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipe.h"

namespace links {

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/** Failure "WHAT: strerror(errno)". */
[[noreturn]] void failWithErrno(const std::string& what);

/** CLOCK_MONOTONIC. */
Nanoseconds clockNow();

/** The kernel kills this process when its parent ends, however it ends. */
void dieWithParent();

/**
 * Leaves for new mount, PID and network namespaces, and a user namespace when root's rights are missing; true when one
 * was needed. The caller then forks: its child is the first process of the PID namespace, and all in it die with that
 * child.
 */
bool unshareNamespaces();

/** Of the first process: own /proc, an empty /dev/shm, and /etc/hosts with `lines` added. */
void mountPrivate(const std::string& hostsLines);

struct NetworkHost {
  int namespaceFd;   // keeps the namespace alive
  int tunFd;         // non-blocking, one packet a read or write
  int backboneFd;    // likewise, each packet with its offload header before it; -1 without a backbone
  int statisticsFd;  // /proc/net/dev of that namespace
};

struct NetworkHostOptions {
  std::string name;
  uint32_t address;  // host byte order
  uint32_t mtu;
  std::string congestion;  // empty: the kernel's default
  bool slowStartAfterIdle;
  std::vector<uint32_t> backbone;  // addresses of the servers that it reaches over the backbone
};

/**
 * Makes a network namespace with loopback, eth0, a TUN interface with a default route, and where it is on the backbone
 * eth1, one with segmentation offload and routes to the other servers. The calling process stays in it.
 */
NetworkHost createNetworkHost(const NetworkHostOptions& options);

/** Packets that the host sent while an interface's own queue was full: they never reached the emulator. */
uint64_t interfaceDrops(int statisticsFd);

/** First-in-first-out real-time priority, above that of whoever started the process; false when the kernel refuses. */
bool takeRealTimePriority();

}  // namespace links
