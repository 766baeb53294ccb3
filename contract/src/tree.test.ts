import { createHash, randomBytes } from "node:crypto";
import {
  BLOCK_BYTES,
  checkProof,
  DIGEST_BYTES,
  hexOf,
  LeafMaker,
  objectId,
  parseObjectId,
  PIECE_BYTES,
  pieceCountOf,
  proofDigestsOf,
  Tree,
} from "./tree";

const hash = (bytes: Uint8Array): Uint8Array => createHash("sha256").update(bytes).digest();

/** The root by BEP 52, over all leaves at once. */
function plainRoot(bytes: Uint8Array): string {
  let level: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += BLOCK_BYTES) level.push(hash(bytes.subarray(at, at + BLOCK_BYTES)));
  if (level.length === 0) return hexOf(hash(bytes));
  while (level.length & (level.length - 1)) level.push(new Uint8Array(DIGEST_BYTES));
  while (level.length > 1)
    level = level.filter((_, i) => i % 2 === 0).map((left, i) => hash(Buffer.concat([left, level[2 * i + 1]!])));
  return hexOf(level[0]!);
}

function treeOf(bytes: Uint8Array, step = 10_007): Tree {
  const maker = new LeafMaker(hash);
  for (let at = 0; at < bytes.length; at += step) maker.update(bytes.subarray(at, at + step));
  return new Tree(maker.finish(), hash);
}

const SIZES = [0, 1, 16_383, 16_384, 16_385, 3 * BLOCK_BYTES, PIECE_BYTES, PIECE_BYTES + 1, 5 * PIECE_BYTES - 7];

test.each(SIZES)("an object of %d bytes has the root of BEP 52, and each piece has a proof", (size) => {
  const bytes = randomBytes(size);
  const tree = treeOf(bytes);
  const name = { root: hexOf(tree.root), bytes: size };
  expect(name.root).toBe(plainRoot(bytes));
  for (let piece = 0; piece < pieceCountOf(size); piece++) {
    const proof = tree.proofOf(piece);
    expect(proof.length).toBe(proofDigestsOf(size, piece) * DIGEST_BYTES);
    const first = (piece * PIECE_BYTES * DIGEST_BYTES) / BLOCK_BYTES;
    expect(Buffer.from(checkProof(name, piece, proof, hash)!)).toEqual(
      Buffer.from(tree.leaves.subarray(first, first + 64 * DIGEST_BYTES)),
    );
    for (let at = 0; at < proof.length; at += DIGEST_BYTES) {
      const wrong = proof.slice();
      wrong[at + (at % DIGEST_BYTES)]! ^= 1;
      expect(checkProof(name, piece, wrong, hash)).toBeUndefined();
    }
    expect(checkProof(name, piece, proof.subarray(DIGEST_BYTES), hash)).toBeUndefined();
    expect(checkProof(name, piece, Buffer.concat([proof, proof.subarray(0, DIGEST_BYTES)]), hash)).toBeUndefined();
    expect(checkProof(name, piece + 1, proof, hash)).toBeUndefined();
  }
});

test("leaves that were made before go on where they end", () => {
  const bytes = randomBytes(5 * BLOCK_BYTES + 3);
  const before = new LeafMaker(hash);
  before.update(bytes.subarray(0, 3 * BLOCK_BYTES + 5));
  const after = new LeafMaker(hash, before.wholeLeaves);
  expect(after.bytes).toBe(3 * BLOCK_BYTES);
  after.update(bytes.subarray(after.bytes));
  expect(hexOf(new Tree(after.finish(), hash).root)).toBe(plainRoot(bytes));
});

test("two blocks and the 64 bytes of their digests have one root and different names", () => {
  const bytes = randomBytes(2 * BLOCK_BYTES);
  const tree = treeOf(bytes);
  const forged = treeOf(tree.leaves.slice());
  expect(hexOf(forged.root)).toBe(hexOf(tree.root));
  expect(checkProof({ root: hexOf(tree.root), bytes: 64 }, 0, tree.proofOf(0), hash)).toBeUndefined();
  expect(objectId({ root: hexOf(tree.root), bytes: 64 })).not.toBe(
    objectId({ root: hexOf(tree.root), bytes: bytes.length }),
  );
});

test("an object's id is read only if it is written as ids are", () => {
  const root = "ab".repeat(32);
  expect(parseObjectId(`${root}-16385`)).toEqual({ root, bytes: 16_385 });
  for (const text of [root, `${root}-`, `${root}-01`, `${root}--1`, `${root.toUpperCase()}-1`, `${root}-1e3`, ""])
    expect(parseObjectId(text)).toBeUndefined();
});
