/**
 * What coding costs a proxy, in processor time a packet, as docs/adr/0007-coding-in-batches.md weighs it: coded symbols
 * one at a time, 16 at a time, and 16 at a time on the pool's threads; then the whole `Sender`, from the request to the
 * messages. Processor time, not time passed, so that other programs matter little. Needs `npm run build`. Linux.
 *
 *     node lab/bench/codec/proxy-path.mjs
 */
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { Sender, xorshift128 } = require("@tributary/protocol");
const { createCoderPool, loadNativeCodec } = require("@tributary/native-codec");

const [SYMBOL_COUNT, SYMBOL_BYTES, BATCH, SYMBOLS, ROUNDS] = [64, 1100, 16, 320_000, 3];
const CHUNK_BYTES = 8 * 1024 * 1024;
const { codec } = loadNativeCodec();
const body = Uint8Array.from({ length: CHUNK_BYTES }, (_, i) => (i * 31) >> 3);

const threadSeconds = (thread) =>
  Number(readFileSync(`/proc/self/task/${thread}/schedstat`, "utf8").split(" ")[0]) / 1e9;
const loopSeconds = () => threadSeconds(process.pid);
const allSeconds = () => readdirSync("/proc/self/task").reduce((sum, thread) => sum + threadSeconds(thread), 0);
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

/** Median over rounds of microseconds a piece of work, on the event loop's thread and on all threads. */
async function report(name, work) {
  const [loop, all] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    const [loopBefore, allBefore] = [loopSeconds(), allSeconds()];
    const count = await work();
    loop.push(((loopSeconds() - loopBefore) / count) * 1e6);
    all.push(((allSeconds() - allBefore) / count) * 1e6);
  }
  console.log(
    `${name.padEnd(52)} ${median(loop).toFixed(2)} us on the event loop, ${median(all).toFixed(2)} us in all`,
  );
}

function encodeHere(encoder, count) {
  const [seeds, out] = [Uint32Array.from({ length: count }, (_, i) => i), new Uint8Array(count * SYMBOL_BYTES)];
  return () => {
    for (let i = 0; i < SYMBOLS; i += count) {
      seeds[0] = i;
      encoder.encodeSeeds(seeds, out);
    }
    return SYMBOLS;
  };
}

function encodeOnPool(pool, encoder, inFlight) {
  return async () => {
    let left = SYMBOLS / BATCH;
    const lane = async () => {
      const [seeds, out] = [
        Uint32Array.from({ length: BATCH }, (_, i) => i),
        new Uint8Array(new SharedArrayBuffer(BATCH * SYMBOL_BYTES)),
      ];
      while (left-- > 0) await pool.encode({ encoder, seeds, out });
    };
    await Promise.all(Array.from({ length: inFlight }, lane));
    return SYMBOLS;
  };
}

/** A whole chunk, of which this proxy's share is one in `proxies`. */
function send(proxies) {
  const source = {
    totalBytes: body.length,
    availableBytes: body.length,
    view: (start, end) => body.subarray(start, end),
  };
  const request = {
    type: "request",
    requestId: 1,
    mode: "coded",
    symbolBytes: SYMBOL_BYTES,
    generationSize: SYMBOL_COUNT,
    windowPackets: 4096,
    share: { start: 0, end: Math.floor(65535 / proxies) },
    url: "http://origin.test/",
  };
  return () => {
    let sent = 0;
    for (let chunk = 0; chunk < 40; chunk++) {
      const sender = new Sender({ request, codec, rng: xorshift128(chunk + 1), nowMs: 0 });
      sender.handlePlan({ status: 200, totalBytes: body.length, headers: {}, serverFetchMs: 1 }, source);
      while (sender.pollTransmit(0)) sent++;
      sender.free();
    }
    return sent;
  };
}

const encoder = codec.createEncoder(SYMBOL_COUNT, SYMBOL_BYTES);
encoder.setSymbols(0, body.subarray(0, SYMBOL_COUNT * SYMBOL_BYTES));
const pool = createCoderPool(codec);
console.log(`${codec.engine}, generations of ${SYMBOL_COUNT} x ${SYMBOL_BYTES}, for each packet:`);
await report("one symbol a call", encodeHere(encoder, 1));
await report(`${BATCH} symbols a call`, encodeHere(encoder, BATCH));
for (const inFlight of [1, 8])
  await report(`${BATCH} symbols a batch on the pool, ${inFlight} in flight`, encodeOnPool(pool, encoder, inFlight));
for (const proxies of [1, 4, 6]) await report(`Sender, one of ${proxies} proxies`, send(proxies));
await pool.close();
