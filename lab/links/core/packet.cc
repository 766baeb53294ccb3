#include "packet.h"

#include <algorithm>

namespace links {
namespace {

constexpr size_t kIpv4HeaderBytes = 20;
constexpr size_t kIcmpHeaderBytes = 8;
constexpr uint8_t kProtocolIcmp = 1;

uint32_t load32(const uint8_t* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
}

void store16(uint8_t* at, uint32_t value) {
  at[0] = static_cast<uint8_t>(value >> 8);
  at[1] = static_cast<uint8_t>(value);
}

void store32(uint8_t* at, uint32_t value) {
  store16(at, value >> 16);
  store16(at + 2, value);
}

/** The Internet checksum, RFC 1071. */
uint32_t checksum(std::span<const uint8_t> bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i++) sum += i % 2 == 0 ? uint32_t{bytes[i]} << 8 : bytes[i];
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
}

}  // namespace

std::optional<Ipv4Header> parseIpv4(std::span<const uint8_t> packet) {
  if (packet.size() < kIpv4HeaderBytes || packet[0] >> 4 != 4) return std::nullopt;
  const size_t headerBytes = size_t{packet[0] & 0x0fu} * 4;
  if (headerBytes < kIpv4HeaderBytes || headerBytes > packet.size()) return std::nullopt;
  return Ipv4Header{load32(&packet[12]), load32(&packet[16]), headerBytes, (packet[6] & 0x40) != 0};
}

Bytes fragmentationNeeded(std::span<const uint8_t> packet, const Ipv4Header& header, uint32_t router, uint32_t mtu) {
  const size_t quotedBytes = std::min(packet.size(), header.headerBytes + 8);
  Bytes out(kIpv4HeaderBytes + kIcmpHeaderBytes + quotedBytes, 0);
  out[0] = 0x45;
  store16(&out[2], static_cast<uint32_t>(out.size()));
  out[8] = 64;
  out[9] = kProtocolIcmp;
  store32(&out[12], router);
  store32(&out[16], header.source);
  store16(&out[10], checksum({out.data(), kIpv4HeaderBytes}));
  uint8_t* icmp = &out[kIpv4HeaderBytes];
  icmp[0] = 3;  // destination unreachable
  icmp[1] = 4;  // fragmentation needed and DF set
  store16(icmp + 6, mtu);
  std::copy_n(packet.begin(), quotedBytes, icmp + kIcmpHeaderBytes);
  store16(icmp + 2, checksum({icmp, kIcmpHeaderBytes + quotedBytes}));
  return out;
}

}  // namespace links
