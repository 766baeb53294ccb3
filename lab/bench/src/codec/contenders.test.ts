import { readFileSync } from "node:fs";
import path from "node:path";
import { Contenders } from "./contenders";
import { wasmCodecs } from "./wasm-codecs";

const moduleFile = path.resolve(__dirname, "../../../../wasm-codec/module/codec-scalar.wasm");
const contenders = (): Contenders => new Contenders(wasmCodecs([readFileSync(moduleFile)]));

test.each(["encode", "decode", "decode-last", "recode"])(
  "contenders: %s is answered with the seconds of one operation",
  async (request) => {
    expect(await contenders().answer(`measure ours scalar ${request} 4 64 4 1`)).toMatch(/^seconds \d/);
  },
);

test("contenders: what there is not is absent, what is misused is an error", async () => {
  expect(await contenders().answer("engines")).toBe("engines scalar");
  expect(await contenders().answer("measure ours simd128 encode 4 64 4 1")).toBe("absent no engine simd128 here");
  expect(await contenders().answer("measure ours scalar guess 4 64 4 1")).toBe("absent wasm/scalar has no guess");
  expect(await contenders().answer("measure ours scalar encode 0 64 4 1")).toMatch(/^error symbolCount/);
});

test("contenders: a module that this runtime cannot run is no engine", () => {
  expect([...wasmCodecs([Uint8Array.of(0, 1, 2)]).keys()]).toEqual([]);
});
