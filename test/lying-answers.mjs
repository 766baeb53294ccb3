/**
 * Makes a proxy lie about answers whose address says so: preloaded into it (node --import). `/lie-status/` gets status
 * 404, `/lie-length/` a shorter body, and `/lie-bytes/` other bytes. It names itself to the origin.
 */
import { ClientRequest } from "node:http";

const CUT_BYTES = 1000;
const LIES = {
  status: (message) => {
    message.statusCode = 404;
  },
  length: (message) => {
    let left = Number(message.headers["content-length"]) - CUT_BYTES;
    message.headers["content-length"] = String(left);
    const push = message.push.bind(message);
    message.push = (chunk, encoding) => {
      const kept = chunk?.subarray(0, Math.max(0, left));
      left -= chunk?.length ?? 0;
      return kept && kept.length === 0 ? true : push(kept ?? null, encoding);
    };
  },
  bytes: (message) => {
    const push = message.push.bind(message);
    message.push = (chunk, encoding) => push(chunk?.map((byte) => byte ^ 1) ?? null, encoding);
  },
};

const { emit, end } = ClientRequest.prototype;
ClientRequest.prototype.emit = function (name, ...words) {
  const lie = name === "response" ? LIES[/\/lie-(\w+)\//.exec(this.path)?.[1]] : undefined;
  lie?.(words[0]);
  return emit.call(this, name, ...words);
};
ClientRequest.prototype.end = function (...words) {
  this.setHeader("x-liar", "1");
  return end.apply(this, words);
};
