/** Makes a proxy lie: preloaded into it (node --import), this changes a byte in each data frame that it sends. */
import { createRequire } from "node:module";

const { Sender } = createRequire(import.meta.url)("@tributary/protocol");
const DATA_TYPES = [0x10, 0x11, 0x12];

const poll = Sender.prototype.pollTransmit;
Sender.prototype.pollTransmit = function (nowMs) {
  const bytes = poll.call(this, nowMs);
  if (bytes && DATA_TYPES.includes(bytes[0])) bytes[bytes.length - 1] ^= 1;
  return bytes;
};
