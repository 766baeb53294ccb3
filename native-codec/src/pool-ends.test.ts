/**
 * How a pool's threads and memory end: with workers, with the process, with the garbage collector. Each test starts a
 * child process, which may crash. The child uses the addon directly, in plain JavaScript.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const ADDON = process.env["TRIBUTARY_ADDON"] ?? join(__dirname, "..", "build", "codec.node");

/**
 * The start of every child's and worker's script. `newPool(threads)` makes a pool, and `run(pool, id, bytes)` submits a
 * batch of about that many bytes of output.
 */
const PREAMBLE = `
  const addon = require(${JSON.stringify(ADDON)});
  class CodecError extends Error {
    constructor(what, got, limit) { super(what + " " + got + " " + limit); }
  }
  addon.setErrorClass(CodecError);
  const newPool = (threads = 2) => {
    const wake = () => setImmediate(() => { const pool = weak.deref(); if (pool) pool.settle(); });
    const pool = new addon.Pool(0, threads, 1000, wake);
    const weak = new WeakRef(pool);
    return pool;
  };
  const source = new Uint8Array(64 * 1000).map((_, i) => i * 7);
  const seedsOf = (bytes) => Uint32Array.from({ length: Math.ceil(bytes / 1000) }, (_, i) => i);
  const shared = (bytes) => new Uint8Array(new SharedArrayBuffer(bytes));
  const encoderOf = () => {
    const encoder = new addon.Encoder(0, 64, 1000);
    encoder.setSymbols(0, source);
    return encoder;
  };
  const run = (pool, id, bytes, allocate = shared) => {
    const seeds = seedsOf(bytes);
    return pool.encode(id, encoderOf(), seeds, allocate(seeds.length * 1000));
  };
`;

/** Resolves to the child's output. A crash or a hang rejects. */
async function child(script: string, ...flags: string[]): Promise<string> {
  const options = { timeout: 60_000, killSignal: "SIGKILL" } as const;
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, "-e", PREAMBLE + script], options);
  return stdout.trim();
}

jest.setTimeout(90_000);

test("ends: batches in flight keep the process alive, and an idle pool does not", async () => {
  expect(await child(`run(newPool(), 1, 8e6).then((out) => console.log(out.length));`)).toBe("8000000");
});

test.each([
  ["process.exit()", "process.exit(0)"],
  ["an uncaught error", "throw new Error('on purpose')"],
])("ends: %s while 30 batches are in flight", async (_how, end) => {
  const script = `
      const pool = newPool(4);
      for (let i = 0; i < 30; i++) run(pool, i, 2e6, i % 2 ? shared : (bytes) => new Uint8Array(bytes));
      console.log("under way");
      setTimeout(() => { ${end} }, 3);`;
  const ended = await child(script).catch((error: { signal: unknown; stdout: string; stderr: string }) => {
    expect([error.signal, error.stderr.includes("on purpose")]).toEqual([null, true]);
    return error.stdout.trim();
  });
  expect(ended).toBe("under way");
});

test("ends: 6 workers code at once, beside the main thread, with one set of threads", async () => {
  const worker = `
    const pool = newPool();
    (async () => {
      for (let round = 0; round < 20; round++) await Promise.all([1, 2, 3, 4].map((id) => run(pool, id, 256e3)));
      pool.close();
      require("node:worker_threads").parentPort.postMessage("done");
    })();`;
  const script = `
    const { Worker } = require("node:worker_threads");
    const workers = Array.from({ length: 6 }, () => new Worker(${JSON.stringify(PREAMBLE + worker)}, { eval: true }));
    const pool = newPool();
    const done = workers.map((worker) => new Promise((resolve, reject) => {
      worker.on("message", resolve);
      worker.on("error", reject);
    }));
    Promise.all([...done, run(pool, 1, 1e6)]).then(() => console.log("done"));`;
  expect(await child(script)).toBe("done");
});

test("ends: 24 workers exit or are terminated with batches in flight, and the last one unloads the addon", async () => {
  const worker = `
    const pool = newPool(3);
    for (let i = 0; i < 20; i++) run(pool, i, 2e6, i % 2 ? shared : (bytes) => new Uint8Array(bytes)).catch(() => {});
    require("node:worker_threads").parentPort.postMessage("under way");
    if (require("node:worker_threads").threadId % 3 === 0) setTimeout(() => process.exit(0), 2);`;
  const script = `
    const { Worker } = require("node:worker_threads");
    (async () => {
      for (let round = 0; round < 8; round++) {
        await Promise.all([1, 2, 3].map(() => new Promise((resolve, reject) => {
          const worker = new Worker(${JSON.stringify(PREAMBLE + worker)}, { eval: true });
          worker.on("message", () => setTimeout(() => worker.terminate(), round));
          worker.on("error", reject);
          worker.on("exit", resolve);
        })));
      }
      console.log("done");
    })();`;
  const { stdout } = await promisify(execFile)(process.execPath, ["-e", script], { timeout: 60_000 });
  expect(stdout.trim()).toBe("done");
});

test("ends: views, coders and pools are collected while in flight, and their memory comes back", async () => {
  const script = `
    (async () => {
      const check = encoderOf();
      const wanted = new Uint8Array(300e3);
      check.encodeSeeds(seedsOf(300e3), wanted);
      let before = 0;
      for (let round = 0; round < 150; round++) {
        if (round === 50) before = process.memoryUsage.rss();
        const pool = newPool();
        const outs = [0, 1, 2, 3].map((id) => {
          const allocate = id % 2 ? shared : (bytes) => new Uint8Array(bytes);
          return pool.encode(id, encoderOf(), seedsOf(300e3), allocate(300e3));
        });
        gc();
        new Uint8Array(300e3).fill(255);
        for (const out of await Promise.all(outs)) if (Buffer.compare(out, wanted)) throw new Error("wrong bytes");
        gc();
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
      const growth = process.memoryUsage.rss() - before;
      console.log(growth < 64e6 ? "flat" : "grows by " + growth);
    })();`;
  expect(await child(script, "--expose-gc")).toBe("flat");
});

test("ends: an output is moved to a worker and freed there while in flight", async () => {
  const script = `
    const { MessageChannel } = require("node:worker_threads");
    (async () => {
      const pool = newPool();
      const ends = [];
      for (let id = 0; id < 200; id++) {
        const out = new Uint8Array(500e3);
        const encoding = pool.encode(id, encoderOf(), seedsOf(500e3), out);
        ends.push(encoding.then(() => "done", (error) => error.message));
        const { port1, port2 } = new MessageChannel();
        port1.postMessage(out, [out.buffer]);
        port1.close();
        port2.close();
        if (id % 20 === 0) gc();
      }
      console.log([...new Set(await Promise.all(ends))].join(", "));
    })();`;
  expect(await child(script, "--expose-gc")).toBe("out 0 500000");
});
