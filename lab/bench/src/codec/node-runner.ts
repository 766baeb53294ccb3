/**
 * A process of its own that measures the WebAssembly modules, or the addon, in Node: one line in, one line out.
 *
 *     node node-runner.js wasm FILE...     the modules
 *     node node-runner.js addon            the native addon
 */
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { addonContenders } from "./addon";
import { Contenders } from "./contenders";
import { wasmCodecs } from "./wasm-codecs";

async function main([kind, ...files]: readonly string[]): Promise<void> {
  const contenders =
    kind === "addon" ? addonContenders() : new Contenders(wasmCodecs(files.map((file) => readFileSync(file))));
  for await (const line of createInterface({ input: process.stdin }))
    process.stdout.write(`${await contenders.answer(line)}\n`);
}

void main(process.argv.slice(2));
