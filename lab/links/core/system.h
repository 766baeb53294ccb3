// The emulator's use of Linux: namespaces, TUN interfaces, routes, clocks. Every failed call throws a Failure, whose
// text is one sentence for a person.
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

/** Throws Failure with the text "WHAT: strerror(errno)". */
[[noreturn]] void failWithErrno(const std::string& what);

/** CLOCK_MONOTONIC. */
Nanoseconds clockNow();

/** Makes the kernel kill this process when its parent ends. */
void dieWithParent();

/**
 * Enters new mount, PID and network namespaces, and a new user namespace if the rights of root are missing. Returns
 * true if one was needed. The caller then forks. Its child is the first process of the PID namespace, and all processes
 * in it die with that child.
 */
bool unshareNamespaces();

/** Gives the first process its own /proc, an empty /dev/shm, and /etc/hosts with `hostsLines` added. */
void mountPrivate(const std::string& hostsLines);

struct NetworkHost {
  int namespaceFd;   // keeps the namespace alive
  int tunFd;         // non-blocking, one packet a read or write
  int backboneFd;    // like tunFd, with an offload header before each packet; -1 without a backbone
  int statisticsFd;  // /proc/net/dev of that namespace
};

struct NetworkHostOptions {
  std::string name;
  uint32_t address;  // host byte order
  uint32_t mtu;
  std::string congestion;  // empty: the kernel's default
  bool slowStartAfterIdle;
  std::vector<uint32_t> backbone;  // addresses of the other servers on the backbone
};

/**
 * Makes a network namespace with loopback and eth0, a TUN interface with a default route. A host on the backbone also
 * gets eth1, a TUN interface with segmentation offload and routes to the other servers. The calling process stays in
 * the namespace.
 */
NetworkHost createNetworkHost(const NetworkHostOptions& options);

/** Packets that the host sent while an interface's queue was full. They never reached the emulator. */
uint64_t interfaceDrops(int statisticsFd);

/** Takes first-in-first-out real-time priority above that of the starting program. Returns false if refused. */
bool takeRealTimePriority();

}  // namespace links
