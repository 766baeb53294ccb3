/**
 * The parts that only the WebAssembly codec has: its files, its growing memory and its handles. native-codec's
 * conformance suite tests the code itself.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { CodecError } from "@tributary/protocol";
import { WasmDecoder, WasmEncoder } from "./coders";
import { chooseWasmModule, instantiateCodec, type WasmModuleName } from "./index";
import { Handle, ModuleMemory } from "./memory";
import type { CodecModule } from "./module";
import { loadWasmCodec, wasmModulePath } from "./node";

const MODULES: WasmModuleName[] = ["codec-relaxed.wasm", "codec.wasm", "codec-scalar.wasm"];
const SIZE_LIMIT_BYTES = 30_000;

/** Node 20 runs relaxed SIMD only with this flag. */
setFlagsFromString("--experimental-wasm-relaxed-simd");

describe.each(MODULES)("module/%s", (name) => {
  const bytes = readFileSync(wasmModulePath(name));

  test("has the digest that SHA256SUMS records", () => {
    const sums = readFileSync(join(dirname(wasmModulePath(name)), "SHA256SUMS"), "utf8");
    expect(sums).toContain(`${createHash("sha256").update(bytes).digest("hex")}  ${name}\n`);
  });

  test("is small, imports nothing and names no file", () => {
    expect(bytes.length).toBeLessThan(SIZE_LIMIT_BYTES);
    expect(WebAssembly.Module.imports(new WebAssembly.Module(bytes))).toEqual([]);
    expect(bytes.includes(".cc")).toBe(false);
  });

  test("keeps its objects when its memory grows", () => {
    const codec = instantiateCodec(bytes);
    const decoder = codec.createDecoder(2, 100);
    const symbols = [new Uint8Array(100).fill(7), new Uint8Array(100).fill(8)] as const;
    decoder.addSystematic(0, symbols[0]);
    const large = Array.from({ length: 20 }, () => codec.createEncoder(256, 4096));
    decoder.addSystematic(1, symbols[1]);
    const out = new Uint8Array(200);
    decoder.read(0, 2, out);
    expect(Buffer.compare(out, Buffer.concat(symbols))).toBe(0);
    for (const encoder of large) encoder.free();
  });

  test("gives memory back with free(): 2,000 decoders in turn need no more memory than one", () => {
    const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), {});
    const module = instance.exports as unknown as CodecModule;
    module.start();
    module.decoderFree(module.decoderNew(256, 4096));
    const bytesBefore = module.memory.buffer.byteLength;
    for (let i = 0; i < 2000; i++) module.decoderFree(module.decoderNew(256, 4096));
    expect(module.memory.buffer.byteLength).toBe(bytesBefore);
  });
});

test("wasm codec: blocks are aligned and do not overlap, and freed blocks merge in any order", () => {
  const bytes = readFileSync(wasmModulePath("codec.wasm"));
  const module = new WebAssembly.Instance(new WebAssembly.Module(bytes), {}).exports as unknown as CodecModule;
  const poolBytes = 1 << 20;
  expect(module.reserve(poolBytes)).toBe(1);
  const before = module.memory.buffer;
  const blocks = Array.from({ length: 300 }, (_, index) => ({
    address: module.allocate(1 + index * 7),
    byteCount: 1 + index * 7,
    key: (index * 2654435761) >>> 0,
  }));
  const memory = new Uint8Array(before);
  blocks.forEach(({ address, byteCount }, index) => memory.fill(index, address, address + byteCount));
  blocks.forEach(({ address, byteCount }, index) => {
    expect(address % 16).toBe(0);
    expect(memory.subarray(address, address + byteCount).every((byte) => byte === index % 256)).toBe(true);
  });
  for (const { address } of blocks.sort((a, b) => a.key - b.key)) module.release(address);
  expect(module.reserve(poolBytes)).toBe(1);
  expect(module.memory.buffer).toBe(before);
});

test("wasm codec: a memory that cannot grow is a CodecError, and existing coders still work", () => {
  const bytes = readFileSync(wasmModulePath("codec.wasm"));
  const module = new WebAssembly.Instance(new WebAssembly.Module(bytes), {}).exports as unknown as CodecModule;
  const memory = new ModuleMemory(module);
  const encoder = new WasmEncoder(memory, 1, 4);
  while (module.allocate(0x4000_0000) !== 0);
  while (module.allocate(0x100_0000) !== 0);
  const create = (): unknown => new WasmDecoder(memory, 256, 65_536);
  expect(create).toThrow(CodecError);
  expect(create).toThrow(/^out of memory: \d+ more bytes/);
  const out = new Uint8Array(4);
  encoder.setSymbols(0, Uint8Array.of(1, 2, 3, 4));
  encoder.encodeVector(Uint8Array.of(2), out);
  expect([...out]).toEqual([2, 4, 6, 8]);
});

test("wasm codec: chooses relaxed SIMD, then SIMD128, then the scalar module, by what validates", () => {
  expect(chooseWasmModule()).toBe("codec-relaxed.wasm");
  const validate = jest.spyOn(WebAssembly, "validate").mockReturnValueOnce(false);
  expect(chooseWasmModule()).toBe("codec.wasm");
  validate.mockReturnValue(false);
  expect(chooseWasmModule()).toBe("codec-scalar.wasm");
  expect(loadWasmCodec().engine).toBe("wasm/scalar");
  validate.mockRestore();
  expect(loadWasmCodec().engine).toBe("wasm/relaxed-simd");
});

test("wasm codec: the memory does not grow while all objects fit into the pool", () => {
  const bytes = readFileSync(wasmModulePath("codec.wasm"));
  const memory = new ModuleMemory(
    new WebAssembly.Instance(new WebAssembly.Module(bytes), {}).exports as unknown as CodecModule,
    8 << 20,
  );
  const before = memory.module.memory.buffer;
  for (let round = 0; round < 3; round++) {
    const decoders = Array.from({ length: 100 }, () => new WasmDecoder(memory, 24, 1100));
    for (const decoder of decoders) {
      decoder.addSeeded(1, new Uint8Array(1100));
      decoder.free();
    }
  }
  expect(memory.module.memory.buffer).toBe(before);
});

test("wasm codec: refuses bytes that are not a module", () => {
  expect(() => instantiateCodec(Uint8Array.of(1, 2, 3))).toThrow(WebAssembly.CompileError);
});

describe("handle", () => {
  const memory = (): ModuleMemory => {
    const bytes = readFileSync(wasmModulePath("codec.wasm"));
    return new ModuleMemory(
      new WebAssembly.Instance(new WebAssembly.Module(bytes), {}).exports as unknown as CodecModule,
    );
  };

  test("destroys its object once, and throws when it is used again", () => {
    const destroyed: number[] = [];
    const handle = new Handle(memory(), 64, (address) => destroyed.push(address));
    expect(handle.get()).toBe(64);
    handle.free();
    handle.free();
    expect(destroyed).toEqual([64]);
    expect(() => handle.get()).toThrow(CodecError);
  });

  test("destroys its object when it is garbage-collected", async () => {
    setFlagsFromString("--expose-gc");
    const collectGarbage = runInNewContext("gc") as () => void;
    const destroyed: number[] = [];
    const shared = memory();
    for (let address = 64; address < 128; address += 8) new Handle(shared, address, (freed) => destroyed.push(freed));
    for (let i = 0; i < 20 && destroyed.length < 8; i++) {
      collectGarbage();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(destroyed.sort((a, b) => a - b)).toEqual([64, 72, 80, 88, 96, 104, 112, 120]);
  });

  test("turns a failed creation into the module's error", () => {
    const { module } = memory();
    const owner = new ModuleMemory(module);
    const create = (): unknown => new Handle(owner, module.encoderNew(257, 1), module.encoderFree);
    expect(create).toThrow(new CodecError("symbolCount", 257, 256));
  });
});
