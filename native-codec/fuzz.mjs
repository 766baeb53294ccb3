/**
 * Fuzzes the C++ core for long: test/codec_fuzz.cc with AddressSanitizer and UBSan.
 *
 *   npm run fuzz -- codec                       runs 10^6 operations from a random seed, and prints the seed
 *   npm run fuzz -- codec --ops 1e8             runs 10^8 operations
 *   npm run fuzz -- codec --seed 7 --ops 1      replays the sequence of one seed
 */
import { spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { buildSanitized } from "./toolchain.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { ops: { type: "string", default: "1e6" }, seed: { type: "string", default: String(randomInt(2 ** 40)) } },
});
if (
  positionals.length !== 1 ||
  positionals[0] !== "codec" ||
  !(Number(values.ops) >= 1) ||
  !/^\d+$/.test(values.seed)
) {
  const got = process.argv.slice(2).join(" ");
  console.error(`usage: npm run fuzz -- codec [--ops N (at least 1)] [--seed N (an integer)]; got ${got}`);
  process.exit(2);
}
const program = await buildSanitized("codec_fuzz");
process.exit(spawnSync(program, [values.seed, values.ops], { stdio: "inherit" }).status ?? 1);
