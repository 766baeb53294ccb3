/** The real codec, for tests. */
import type { Codec } from "@tributary/protocol";
import { loadWasmCodec } from "@tributary/wasm-codec/node";

export function testCodec(): Promise<Codec> {
  return Promise.resolve(loadWasmCodec());
}
