// IPv4 packets as the emulator sees them: the three header fields it needs, and the one ICMP message it sends.
// No I/O. parseIpv4 refuses packets of other versions and packets with a broken header.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace links {

using Bytes = std::vector<uint8_t>;

struct Ipv4Header {
  uint32_t source;       // host byte order
  uint32_t destination;  // host byte order
  size_t headerBytes;
  bool dontFragment;
};

/** The kernel's header before a packet of an interface with offloads (`virtio_net_hdr`). */
constexpr size_t kOffloadHeaderBytes = 10;

/** Empty if the packet is not IPv4 or is shorter than its header says. */
std::optional<Ipv4Header> parseIpv4(std::span<const uint8_t> packet);

/** ICMP "fragmentation needed" (RFC 1191) from `router` to the source of `packet`, naming `mtu`. */
Bytes fragmentationNeeded(std::span<const uint8_t> packet, const Ipv4Header& header, uint32_t router, uint32_t mtu);

}  // namespace links
