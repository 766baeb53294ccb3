/**
 * Makes a proxy lie about published objects: preloaded into it (node --import), it changes the last byte of every
 * packet.
 */
import { createRequire } from "node:module";

const { Sender } = createRequire(new URL("../proxy/package.json", import.meta.url))("@tributary/protocol");

const { handlePlan, pollTransmit } = Sender.prototype;
/** Only objects have proofs. */
const objects = new WeakSet();
const isData = (bytes) => bytes[0] >= 0x10 && bytes[0] <= 0x12;
Sender.prototype.handlePlan = function (head, source) {
  if (source.proof) objects.add(this);
  return handlePlan.call(this, head, source);
};
Sender.prototype.pollTransmit = function (...words) {
  const bytes = pollTransmit.apply(this, words);
  if (!bytes || !isData(bytes) || !objects.has(this)) return bytes;
  const lie = bytes.slice();
  lie[lie.length - 1] ^= 1;
  return lie;
};
