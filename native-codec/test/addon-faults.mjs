/**
 * Tests that the addon survives a lack of memory. Each case runs again and again: first its first allocation fails,
 * then its second, and so on, until no allocation is left to fail. It does so twice: once with a single failure, and
 * once with all later allocations failing too. Each run must throw CodecError `memoryBytes` or succeed, and the same
 * call must succeed right after. native-codec/test.mjs runs this file on the sanitized addon.
 *
 *   node native-codec/test.mjs addon faults
 */
import { strict as assert } from "node:assert";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { CodecError } = require("@tributary/protocol");
const { createCoderPool, loadNativeCodec } = require("../dist/index.js");
const { failAllocations } = require(process.env.TRIBUTARY_ADDON);

const ALLOCATIONS_MAX = 2000;
const [SYMBOL_COUNT, SYMBOL_BYTES, CODED] = [6, 100, 40];
const { codec } = loadNativeCodec();
const source = Uint8Array.from({ length: SYMBOL_COUNT * SYMBOL_BYTES }, (_, i) => (i * 37) >> 2);
const seeds = Uint32Array.from({ length: CODED }, (_, i) => i + 1);
const encoder = codec.createEncoder(SYMBOL_COUNT, SYMBOL_BYTES);
encoder.setSymbols(0, source);
const coded = new Uint8Array(CODED * SYMBOL_BYTES);
encoder.encodeSeeds(seeds, coded);
const payload = (i) => coded.subarray(i * SYMBOL_BYTES, (i + 1) * SYMBOL_BYTES);
const pool = createCoderPool(codec, { threads: 2 });

const plain = (bytes) => new Uint8Array(bytes);
const shared = (bytes) => new Uint8Array(new SharedArrayBuffer(bytes));
const isCoded = (out) => assert.equal(Buffer.compare(out, coded), 0);
const isSource = (out) => assert.equal(Buffer.compare(out, source), 0);

function coderCase(make, use = () => undefined) {
  return { run: () => make(), check: (coder) => (use(coder), coder.free()) };
}

/**
 * Cases by name. `run` may fail, and `check` gets its result. `state` is made once for each attempt; the attempt and
 * its repetition both use it.
 */
const CASES = {
  "new Encoder": coderCase(() => codec.createEncoder(SYMBOL_COUNT, SYMBOL_BYTES)),
  "new Decoder": coderCase(() => codec.createDecoder(SYMBOL_COUNT, SYMBOL_BYTES)),
  "new Recoder": coderCase(() => codec.createRecoder(SYMBOL_COUNT, SYMBOL_BYTES)),
  "new RepairEncoder": coderCase(() => codec.createRepairEncoder(SYMBOL_COUNT, SYMBOL_BYTES)),
  "new RepairDecoder": coderCase(() => codec.createRepairDecoder(SYMBOL_COUNT, SYMBOL_BYTES)),
  "a repair": {
    state: () => codec.createRepairDecoder(SYMBOL_COUNT, SYMBOL_BYTES),
    run: (decoder) => {
      for (let i = 0; decoder.missingCount > 0; i++) decoder.addSeeded(seeds[i], payload(i));
      const out = plain(source.length);
      decoder.read(0, SYMBOL_COUNT, out);
      return out;
    },
    check: isSource,
  },
  "a misuse": {
    run: () => assert.throws(() => encoder.encodeSeeds(seeds, plain(1)), { what: "out", got: 1 }),
    check: () => undefined,
  },
  "a pool of its own, from start to end": {
    run: async () => {
      const own = createCoderPool(codec, { threads: 1 });
      try {
        return await own.encode({ encoder, seeds, out: shared(coded.length) });
      } finally {
        await own.close();
      }
    },
    check: isCoded,
  },
  "a batch of an encoder, plain memory": {
    state: () => plain(coded.length),
    run: (out) => pool.encode({ encoder, seeds, out }),
    check: isCoded,
  },
  "a batch of an encoder, shared memory": {
    state: () => shared(coded.length),
    run: (out) => pool.encode({ encoder, seeds, out }),
    check: isCoded,
  },
  "a batch of received symbols": {
    state: () => plain(source.length),
    run: async (out) => {
      const coefficients = Buffer.concat(
        [...seeds.subarray(0, 20)].map((seed) => codec.coefficients(seed, SYMBOL_COUNT)),
      );
      const batch = { indices: Uint32Array.of(2), seeds: seeds.subarray(20), coefficients, out };
      const payloads = Buffer.concat([
        source.subarray(2 * SYMBOL_BYTES, 3 * SYMBOL_BYTES),
        coded.subarray(20 * SYMBOL_BYTES),
        coded.subarray(0, 20 * SYMBOL_BYTES),
      ]);
      const { rank } = await pool.decode({ symbolCount: SYMBOL_COUNT, symbolBytes: SYMBOL_BYTES, payloads, ...batch });
      assert.equal(rank, SYMBOL_COUNT);
      return out;
    },
    check: isSource,
  },
  "many batches at once": {
    state: () => Array.from({ length: 30 }, () => shared(coded.length)),
    run: async (outs) => {
      const settled = await Promise.allSettled(outs.map((out) => pool.encode({ encoder, seeds, out })));
      const failed = settled.find(({ status }) => status === "rejected");
      if (failed) throw failed.reason;
      return outs;
    },
    check: (outs) => outs.forEach(isCoded),
  },
};

/** Returns true if an allocation failed, because then a later one may be left to try. */
async function attempt({ state = () => undefined, run, check }, after, isForever) {
  const its = state();
  failAllocations(after, isForever);
  let [result, error] = [undefined, undefined];
  try {
    result = await run(its);
  } catch (caught) {
    error = caught;
  }
  const failures = failAllocations(-1, false);
  if (error === undefined) check(result);
  else if (failures === 0 || !(error instanceof CodecError) || error.what !== "memoryBytes") throw error;
  check(await run(its));
  return failures > 0;
}

let [passed, failed] = [0, 0];
for (const [name, one] of Object.entries(CASES)) {
  for (const isForever of [false, true]) {
    const extent = isForever ? "all later ones" : "one";
    let after = 0;
    try {
      while (await attempt(one, after, isForever)) assert.ok(++after < ALLOCATIONS_MAX, "The allocations do not end.");
      passed++;
      console.log(`ok      ${name}: ${after} allocations, ${extent} failing`);
    } catch (error) {
      failAllocations(-1, false);
      failed++;
      console.log(`FAILED  ${name}: allocation ${after + 1}, ${extent} failing: ${error.stack}`);
    }
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
