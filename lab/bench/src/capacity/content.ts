/** What the viewers watch: channels of video at one constant rate, as bytes that both ends can compute. */
import { LIMITS } from "@tributary/protocol";

/** The paper's video: 750 kbit/s (section IV-C). */
export const VIEWER_BYTES_PER_SEC = 750_000 / 8;
/** A viewer asks for one group, which is one generation of the protocol's largest size. */
export const GROUP_SYMBOLS = LIMITS.codedGenerationSizeDefault;
export const GROUP_BYTES = GROUP_SYMBOLS * LIMITS.symbolBytesDefault;
export const GROUP_MS = (1000 * GROUP_BYTES) / VIEWER_BYTES_PER_SEC;
/** A video has 160 MB, as the paper's (section IV-C). A viewer that reaches its end begins again. */
export const GROUPS_PER_VIDEO = Math.floor(160e6 / GROUP_BYTES);

/** Payload, frame header, QUIC, UDP and IPv4 headers, and what Ethernet adds: about 1,200 bytes a packet. */
const WIRE_BYTES_PER_PACKET = 1200;
/** The viewers that Gigabit Ethernet carries. */
export const GIGABIT_VIEWERS = Math.floor(
  1e9 / 8 / ((VIEWER_BYTES_PER_SEC * WIRE_BYTES_PER_PACKET) / LIMITS.symbolBytesDefault),
);

const PERIOD_BYTES = 4 * 1024 * 1024;
/** Neighbouring channels are this far apart in the same random bytes. It is odd, so no two groups are equal. */
const CHANNEL_STEP_BYTES = 104_729;

const bytes = new Uint8Array(PERIOD_BYTES + GROUP_BYTES);
for (let at = 0, state = 0x2545f491; at < PERIOD_BYTES; at++) {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  bytes[at] = state;
}
bytes.copyWithin(PERIOD_BYTES, 0, GROUP_BYTES);

/** The bytes of one group. A view: do not write to it. */
export function groupOf(channel: number, group: number): Uint8Array {
  const start = (channel * CHANNEL_STEP_BYTES + group * GROUP_BYTES) % PERIOD_BYTES;
  return bytes.subarray(start, start + GROUP_BYTES);
}

export const pathOf = (channel: number): string => `/channel/${channel}.mp4`;
