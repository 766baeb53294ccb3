/**
 * Makes a proxy lie: preloaded into it (node --import), this changes one bit in each hundred bytes of media from
 * origins.
 */
import { IncomingMessage } from "node:http";

const push = IncomingMessage.prototype.push;
IncomingMessage.prototype.push = function (chunk, encoding) {
  if (Buffer.isBuffer(chunk) && /^(?:video|audio)\//.test(this.headers["content-type"] ?? "")) {
    for (let at = 0; at < chunk.length; at += 100) chunk[at] ^= 1;
  }
  return push.call(this, chunk, encoding);
};
