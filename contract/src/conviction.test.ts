import { createHash, randomBytes } from "node:crypto";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { Conviction } from "./conviction";
import { evidenceFault, seedCoefficients } from "./evidence";
import { BLOCK_BYTES, hexOf, LeafMaker, objectId, PIECE_BYTES, Tree } from "./tree";

const hash = (bytes: Uint8Array): Uint8Array => createHash("sha256").update(bytes).digest();
const decode = (text: string): Uint8Array => Buffer.from(text, "base64");
const encode = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
const codec = loadWasmCodec();
const SYMBOL_BYTES = 1024;

/** An object whose second generation lies in two pieces and ends with the object. */
const content = randomBytes(PIECE_BYTES + 2 * BLOCK_BYTES + 77);
const maker = new LeafMaker(hash);
maker.update(content);
const tree = new Tree(maker.finish(), hash);
const offset = PIECE_BYTES - 2 * BLOCK_BYTES;
const generation = content.subarray(offset);
const symbolCount = Math.ceil(generation.length / SYMBOL_BYTES);

function truth(coding: Conviction["coding"]): Uint8Array {
  const encoder = codec.createEncoder(symbolCount, SYMBOL_BYTES);
  const padded = new Uint8Array(symbolCount * SYMBOL_BYTES);
  padded.set(generation);
  encoder.setSymbols(0, padded);
  const out = new Uint8Array(SYMBOL_BYTES);
  if (coding.kind === "seed") encoder.encodeSeeds(Uint32Array.of(coding.seed), out);
  else if (coding.kind === "vector") encoder.encodeVector(decode(coding.coefficients), out);
  else out.set(padded.subarray(coding.symbolIndex * SYMBOL_BYTES, (coding.symbolIndex + 1) * SYMBOL_BYTES));
  encoder.free();
  return out;
}

function evidence(coding: Conviction["coding"], more: Partial<Conviction> = {}): Conviction {
  const payload = truth(coding);
  payload[7]! ^= 1;
  return Conviction.parse({
    proxy: "p1",
    key: "A".repeat(43),
    name: "film",
    object: objectId({ root: hexOf(tree.root), bytes: content.length }),
    offset,
    symbolBytes: SYMBOL_BYTES,
    coding,
    payload: encode(payload),
    generation: encode(generation),
    proofs: [0, 1].map((piece) => encode(tree.proofOf(piece))),
    ...more,
  });
}

const vector = randomBytes(symbolCount);
const CODINGS: Conviction["coding"][] = [
  { kind: "systematic", symbolIndex: symbolCount - 1 },
  { kind: "seed", seed: 0xdeadbeef },
  { kind: "vector", coefficients: encode(vector) },
];

test.each([1, 2, 7, 8, 9, 100, 128])(
  "convictions: the coefficients of a seed are the codec's (%d symbols)",
  (count) => {
    for (const seed of [0, 1, 0xffff_ffff, 12_345])
      expect(encode(seedCoefficients(seed, count))).toBe(encode(codec.coefficients(seed, count)));
  },
);

describe.each(CODINGS)("convictions: evidence with a packet of the kind $kind", (coding) => {
  test("convicts if one bit is false", () => expect(evidenceFault(evidence(coding), decode, hash)).toBeUndefined());

  test("proves nothing if the packet is true", () => {
    const fault = evidenceFault(evidence(coding, { payload: encode(truth(coding)) }), decode, hash);
    expect(fault).toMatch(/^payload: is true/);
  });
});

const proofs = evidence(CODINGS[0]!).proofs;
const falseBytes = Buffer.from(generation);
falseBytes[BLOCK_BYTES + 1]! ^= 1;
test.each<[string, Partial<Conviction>, RegExp]>([
  ["bytes that are not the object's", { generation: encode(falseBytes) }, /^generation: the block at 1032192 /],
  ["another offset", { offset: offset - BLOCK_BYTES }, /^generation: must begin and end with blocks/],
  ["bytes beyond the object's end", { offset: offset + BLOCK_BYTES }, /^generation: must end within/],
  ["a proof too few", { proofs: proofs.slice(1) }, /^proofs: must be 2, got 1/],
  [
    "a proof too long",
    { proofs: [proofs[0]!, encode(Buffer.concat([decode(proofs[1]!), hash(vector)]))] },
    /digests, got/,
  ],
  ["proofs out of order", { proofs: [...proofs].reverse() }, /^proofs\[0\]: must have/],
  ["another root", { object: `${"0".repeat(64)}-${content.length}` }, /^proofs\[0\]: does not lead/],
  ["a short payload", { payload: "AAAA" }, /^payload: must have 1024 bytes, got 3/],
  ["an empty generation", { generation: "" }, /^generation: must have 1 to 128 symbols/],
  ["a symbol beyond the generation", { coding: { kind: "systematic", symbolIndex: 127 } }, /^coding.symbolIndex/],
  ["a short vector", { coding: { kind: "vector", coefficients: "AAAA" } }, /^coding.coefficients: must be/],
])("convictions: %s proves nothing", (_name, more, fault) =>
  expect(evidenceFault(evidence(CODINGS[0]!, more), decode, hash)).toMatch(fault),
);
