/**
 * Makes a proxy lie about published objects: preloaded into it (node --import). The file LIE_FILE, which may change at
 * any time, names the lie of each new request; without a name there the proxy tells the truth. Without the variable,
 * every payload is false.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { ServerResponse } from "node:http";
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";

const require = createRequire(new URL("../proxy/package.json", import.meta.url));
const { Sender } = require("@tributary/protocol");
const { LeafMaker, Tree } = require("@tributary/contract/tree");
const { ObjectOrigin } = require("./dist/library/object-origin.js");

const { LIE_FILE } = process.env;
const lieNow = () => (LIE_FILE === undefined ? "payloads" : readFileSync(LIE_FILE, "utf8"));

/** Where the payload begins, by the type of the data frame (protocol.md §4.4, §4.5). */
const PAYLOAD_AT = { 0x10: 13, 0x11: 16 };
const PLAN = 0x03;
const PLAN_STATUS_AT = 5;
const PLAN_LENGTH_AT = 7;
const PROOF = 0x07;
const PROOF_AT = 10;
const LATE_MS = 300;
const HONEST_PACKETS = 20;
const FALSE_PACKETS = 5;

/** Changes this share of the bytes from `at` on, and at least one. */
function spoil(message, at, share = 1) {
  const made = Uint8Array.from(message);
  for (let index = at; index < made.length; index++) if (Math.random() < share) made[index] ^= 1;
  made[made.length - 1] ^= 2;
  return made;
}

function raise(message, at) {
  const made = message.slice();
  const view = new DataView(made.buffer, made.byteOffset);
  view.setUint32(at, view.getUint32(at) + 1);
  return made;
}

function withStatus(message, status) {
  const made = message.slice();
  new DataView(made.buffer, made.byteOffset).setUint16(PLAN_STATUS_AT, status);
  return made;
}

const onPayload = (change) => (message, sent) => {
  const at = PAYLOAD_AT[message[0]];
  return at === undefined ? message : change(message, at, sent);
};
const on = (type, change) => (message) => (message[0] === type ? change(message) : message);
const all = onPayload((message, at) => spoil(message, at));

/** What a lie makes of a message. `sent` counts the data frames of the request before this one. */
const OF_MESSAGES = {
  payloads: all,
  late: all,
  everywhere: all,
  hundredth: onPayload((message, at) => spoil(message, at, 0.01)),
  repair: onPayload((message, at) => (message[0] === 0x10 ? message : spoil(message, at))),
  turning: onPayload((message, at, sent) => (sent < HONEST_PACKETS ? message : spoil(message, at))),
  silent: onPayload((message, at, sent) => (sent < FALSE_PACKETS ? spoil(message, at) : undefined)),
  proofs: on(PROOF, (message) => spoil(message, PROOF_AT)),
  lengths: on(PLAN, (message) => raise(message, PLAN_LENGTH_AT)),
  statuses: on(PLAN, (message) => withStatus(message, 404)),
};
const { handlePlan, pollTransmit } = Sender.prototype;
/** The lies of the senders of objects: only objects have proofs. */
const lies = new WeakMap();
Sender.prototype.handlePlan = function (head, source) {
  const twist = source.proof && OF_MESSAGES[lieNow()];
  if (twist) lies.set(this, twist);
  return handlePlan.call(this, head, source);
};
Sender.prototype.pollTransmit = function (...words) {
  const sent = this.stats.sentPackets;
  const message = pollTransmit.apply(this, words);
  const twist = lies.get(this);
  return message && twist ? twist(message, sent) : message;
};

const sha256 = (bytes) => createHash("sha256").update(bytes).digest();

/** What a lie makes of an object. The proxy proves it as if it were true. */
const OF_OBJECTS = {
  roots: (bytes) => bytes.map((byte, at) => (at % 1000 === 0 ? byte ^ 1 : byte)),
  replay: (bytes, first) => bytes.map((_, at) => first[at % first.length]),
};
const { fetch } = ObjectOrigin.prototype;
/** The object that was asked for first. */
let first;
async function read(origin, text, signal, client) {
  const pieces = [];
  for await (const piece of (await fetch.call(origin, text, undefined, signal, client)).body) pieces.push(piece);
  return Buffer.concat(pieces);
}
ObjectOrigin.prototype.fetch = async function (text, range, signal, client, details) {
  const lie = lieNow();
  if (lie === "late") await pause(LATE_MS);
  const answer = await fetch.call(this, text, range, signal, client, details);
  if (!answer.proof || !OF_OBJECTS[lie]) return answer;
  const whole = await read(this, text, signal, client);
  const made = OF_OBJECTS[lie](whole, (first ??= whole));
  const start = Number(/^bytes (\d+)-/.exec(answer.headers["content-range"] ?? "")?.[1] ?? 0);
  const leaves = new LeafMaker(sha256);
  leaves.update(made);
  const tree = new Tree(leaves.finish(), sha256);
  const body = (async function* () {
    yield Buffer.from(made.subarray(start, start + answer.totalBytes));
  })();
  return { ...answer, body, cancel: () => undefined, proof: (piece) => tree.proofOf(piece) };
};

/** What share of the bytes of an answer over HTTP a lie changes. With 0 it changes the last one of each piece. */
const IN_BODIES = { everywhere: 1, "http-payloads": 1, "http-hundredth": 0.01, "http-byte": 0 };
const isProof = (url) => /^\/v1\/objects\/[^/]+\/proof\?/.test(url);
const isBody = (url) => /^\/v1\/(?:objects\/[^/]+(?:\?|$)|fetch\?.*url=object)/.test(url);
/** Express cuts off of `url` where a router hangs. */
const urlOf = ({ req }) => req.originalUrl ?? req.url;
const { write, end, setHeader } = ServerResponse.prototype;
function falseOverHttp(response, chunk) {
  if (!(chunk instanceof Uint8Array) || response.req.method !== "GET") return chunk;
  const [lie, url] = [lieNow(), urlOf(response)];
  if (lie === "http-proofs" && isProof(url)) return spoil(chunk, 0);
  return lie in IN_BODIES && isBody(url) ? spoil(chunk, 0, IN_BODIES[lie]) : chunk;
}
ServerResponse.prototype.write = function (chunk, ...words) {
  return write.call(this, falseOverHttp(this, chunk), ...words);
};
ServerResponse.prototype.end = function (chunk, ...words) {
  return end.call(this, falseOverHttp(this, chunk), ...words);
};
ServerResponse.prototype.setHeader = function (name, value) {
  const isLie = name === "x-origin-content-length" && isBody(urlOf(this)) && lieNow() === "http-lengths";
  return setHeader.call(this, name, isLie ? value + 1 : value);
};
