import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { loadNativeCodec, openGpuCoder } from "../index";

const native = loadNativeCodec().codec;

test("a library that is not there is a reason, and so is a codec without a GPU coder", () => {
  if (native) {
    for (const other of ["libnone.so", "libc.so.6", "/", ""])
      expect(openGpuCoder(native, other)).toEqual({ reason: expect.stringMatching(/./) });
    expect(openGpuCoder(native, "libnone.so")).toEqual({ reason: expect.stringContaining("libnone.so") });
  }
  expect(openGpuCoder(loadWasmCodec())).toEqual({ reason: expect.stringContaining("wasm") });
});
