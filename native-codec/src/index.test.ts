/** The door: which codec it returns, what it says when the addon is missing, and whether memory comes back. */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { transformSync } from "@swc/core";
import { CodecError, type Encoder } from "@tributary/protocol";
import { loadWasmCodec } from "@tributary/wasm-codec/node";

/** This package's door on a machine where the addon is not built. */
function doorWithoutAddon(): typeof import("./index") {
  let door: typeof import("./index") | undefined;
  jest.isolateModules(() => {
    jest.doMock("node:fs", () => ({
      ...jest.requireActual<typeof import("node:fs")>("node:fs"),
      existsSync: (path: string) => !path.endsWith("codec.node"),
    }));
    // eslint-disable-next-line @typescript-eslint/no-require-imports
    door = require("./index") as typeof import("./index");
    jest.dontMock("node:fs");
  });
  return door!;
}

// eslint-disable-next-line @typescript-eslint/no-require-imports
const door = require("./index") as typeof import("./index");

afterEach(() => {
  delete process.env["TRIBUTARY_ENGINE"];
});

describe("native codec: engine selection", () => {
  test("uses the fastest engine by default and for an empty name", () => {
    const fastest = `native/${door.nativeEngineNames()[0]}`;
    expect(door.loadCodec(loadWasmCodec).engine).toBe(fastest);
    process.env["TRIBUTARY_ENGINE"] = "";
    expect(door.loadCodec(loadWasmCodec).engine).toBe(fastest);
  });

  test("uses the engine that TRIBUTARY_ENGINE names", () => {
    process.env["TRIBUTARY_ENGINE"] = "reference";
    expect(door.loadCodec(loadWasmCodec).engine).toBe("native/reference");
  });

  test("refuses an unknown name and lists the engines", () => {
    process.env["TRIBUTARY_ENGINE"] = "mmx";
    const load = (): unknown => door.loadCodec(loadWasmCodec);
    expect(load).toThrow(CodecError);
    expect(load).toThrow(
      `TRIBUTARY_ENGINE: no engine "mmx" on this processor; there are ${door.nativeEngineNames().join(", ")}`,
    );
  });
});

describe("native codec: not built", () => {
  test("loadNativeCodec says why; loadCodec warns once and returns the fallback", () => {
    const without = doorWithoutAddon();
    expect(without.nativeEngineNames()).toEqual([]);
    expect(without.loadNativeCodec()).toEqual({ codec: undefined, reason: expect.stringContaining("is not built") });
    const warnings: string[] = [];
    expect(without.loadCodec(loadWasmCodec, (message) => warnings.push(message)).engine).toMatch(
      /^wasm\/(simd128|relaxed-simd)$/,
    );
    expect(warnings).toEqual([
      expect.stringMatching(/^native codec not in use: .*codec\.node is not built.*wasm\/(simd128|relaxed-simd)/),
    ]);
  });
});

describe("native codec: from the platform's package", () => {
  const name = `native-codec-${process.platform}-${process.arch}`;
  const packageJson = JSON.parse(readFileSync(join(__dirname, "..", "package.json"), "utf8")) as { version: string };
  let dir: string;

  /**
   * What addon.ts loads when this package is installed without build/, next to a platform package of `version`: the
   * name of the first engine, or the reason why there is none.
   */
  const engineWith = (version: string): string => {
    const scope = join(dir, "node_modules", "@tributary");
    mkdirSync(join(scope, name), { recursive: true });
    mkdirSync(join(scope, "native-codec", "src"), { recursive: true });
    copyFileSync(join(__dirname, "..", "build", "codec.node"), join(scope, name, "codec.node"));
    writeFileSync(join(scope, name, "package.json"), JSON.stringify({ version }));
    writeFileSync(join(scope, "native-codec", "package.json"), JSON.stringify(packageJson));
    const source = readFileSync(join(__dirname, "addon.ts"), "utf8");
    const { code } = transformSync(source, { jsc: { parser: { syntax: "typescript" } }, module: { type: "commonjs" } });
    writeFileSync(join(scope, "native-codec", "src", "addon.js"), code);
    mkdirSync(join(scope, "protocol"), { recursive: true });
    writeFileSync(join(scope, "protocol", "index.js"), "exports.CodecError = class extends Error {}");
    const script = `
      const addon = require("@tributary/native-codec/src/addon.js").loadAddon();
      console.log(typeof addon === "string" ? addon : addon.engineNames[0])`;
    const env = { ...process.env, TRIBUTARY_ADDON: undefined };
    return execFileSync(process.execPath, ["-e", script], { cwd: dir, encoding: "utf8", env }).trim();
  };

  beforeAll(() => (dir = mkdtempSync(join(tmpdir(), "tributary-package-"))));
  afterAll(() => rmSync(dir, { recursive: true }));

  test("is used when nothing is built", () => {
    expect(engineWith(packageJson.version)).toBe(door.nativeEngineNames()[0]);
  });

  test("is refused when it has another version, and both reasons are given", () => {
    expect(engineWith("0.0.1")).toMatch(
      /codec\.node is not built.*; @tributary\/native-codec-.* has version 0\.0\.1, but this package needs/,
    );
  });
});

test("native codec: methods and getters refuse an object of another class", () => {
  const codec = door.loadCodec(loadWasmCodec);
  const [encoder, decoder] = [codec.createEncoder(2, 2), codec.createDecoder(2, 2)];
  const rank = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(decoder), "rank")?.get;
  for (const receiver of [encoder, {}, undefined, 5]) {
    expect(() => rank?.call(receiver)).toThrow();
    expect(() => decoder.isDecoded.call(receiver as never, 0)).toThrow();
  }
  expect(rank?.call(decoder)).toBe(0);
});

describe("native codec: memory", () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  const MEGABYTE = 1_000_000;
  const GENERATION = new Uint8Array(16 * MEGABYTE);

  /** By how much the process grows while it makes 15 encoders of 16 MB, one after another. */
  const growthBytes = async (after: (encoder: Encoder) => void): Promise<number> => {
    const codec = door.loadCodec(loadWasmCodec);
    const before = process.memoryUsage.rss();
    for (let i = 0; i < 15; i++) {
      const encoder = codec.createEncoder(250, 64_000);
      encoder.setSymbols(0, GENERATION);
      after(encoder);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return process.memoryUsage.rss() - before;
  };

  test("comes back with free()", async () => {
    expect(await growthBytes((encoder) => encoder.free())).toBeLessThan(100 * MEGABYTE);
  });

  test("comes back when the object is garbage-collected", async () => {
    expect(await growthBytes(() => collectGarbage())).toBeLessThan(100 * MEGABYTE);
  }, 30_000);
});
