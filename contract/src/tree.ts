/**
 * Hash trees of objects, as in BitTorrent v2 (BEP 52): SHA-256 over blocks of 16 KiB, and SHA-256 over pairs of digests
 * up to the root. Leaves that the object does not have are 32 zero bytes. An object is named by its root and its
 * length, because a root alone does not tell a digest of two digests from a block of 64 bytes. An object of 0 bytes has
 * SHA-256 of nothing as its root. Digests stand one after the other in one array, 32 bytes each. Pure: the caller gives
 * the hash.
 */

/** SHA-256. */
export type Hash = (bytes: Uint8Array) => Uint8Array;

export const DIGEST_BYTES = 32;
export const BLOCK_BYTES = 16 * 1024;
/** Proofs are made for pieces: subtrees of 64 blocks (1 MiB). */
export const PIECE_BLOCKS = 64;
export const PIECE_BYTES = PIECE_BLOCKS * BLOCK_BYTES;

/** The name of an object: 64 hex digits of its root, a hyphen, and its length in bytes. */
export interface ObjectName {
  /** Lower-case hex. */
  root: string;
  bytes: number;
}

const OBJECT_ID = /^([0-9a-f]{64})-(0|[1-9]\d{0,14})$/;

export const objectId = ({ root, bytes }: ObjectName): string => `${root}-${bytes}`;

/** Undefined if the text is no object's id. */
export function parseObjectId(text: string): ObjectName | undefined {
  const match = OBJECT_ID.exec(text);
  return match ? { root: match[1]!, bytes: Number(match[2]) } : undefined;
}

export const blockCountOf = (bytes: number): number => Math.ceil(bytes / BLOCK_BYTES);
export const pieceCountOf = (bytes: number): number => Math.ceil(bytes / PIECE_BYTES);
/** How many blocks the piece has. */
export const blocksOfPiece = (bytes: number, piece: number): number =>
  Math.min(PIECE_BLOCKS, blockCountOf(bytes) - piece * PIECE_BLOCKS);
/** How many digests prove the piece: its leaves, and one more for each level between the piece and the root. */
export const proofDigestsOf = (bytes: number, piece: number): number =>
  blocksOfPiece(bytes, piece) + Math.ceil(Math.log2(pieceCountOf(bytes)));

/** Makes the leaves of an object while its bytes arrive. */
export class LeafMaker {
  readonly #hash: Hash;
  readonly #block = new Uint8Array(BLOCK_BYTES);
  #inBlock = 0;
  #leaves = new Uint8Array(PIECE_BLOCKS * DIGEST_BYTES);
  #leafCount = 0;
  /** The bytes so far. */
  bytes = 0;

  /** `leaves`: those of the whole blocks that the caller had before. */
  constructor(hash: Hash, leaves: Uint8Array = new Uint8Array()) {
    this.#hash = hash;
    for (let at = 0; at < leaves.length; at += DIGEST_BYTES) this.#push(leaves.subarray(at, at + DIGEST_BYTES));
    this.bytes = this.#leafCount * BLOCK_BYTES;
  }

  update(bytes: Uint8Array): void {
    this.bytes += bytes.length;
    for (let at = 0; at < bytes.length;) {
      if (this.#inBlock === 0 && bytes.length - at >= BLOCK_BYTES) {
        this.#push(this.#hash(bytes.subarray(at, at + BLOCK_BYTES)));
        at += BLOCK_BYTES;
        continue;
      }
      const part = bytes.subarray(at, at + BLOCK_BYTES - this.#inBlock);
      this.#block.set(part, this.#inBlock);
      this.#inBlock += part.length;
      at += part.length;
      if (this.#inBlock === BLOCK_BYTES) this.#closeBlock();
    }
  }

  /** All leaves. Nothing may be added after this. */
  finish(): Uint8Array {
    if (this.#inBlock > 0) this.#closeBlock();
    return this.wholeLeaves;
  }

  /** The leaves of the blocks that are whole. */
  get wholeLeaves(): Uint8Array {
    return this.#leaves.subarray(0, this.#leafCount * DIGEST_BYTES);
  }

  #closeBlock(): void {
    this.#push(this.#hash(this.#block.subarray(0, this.#inBlock)));
    this.#inBlock = 0;
  }

  #push(leaf: Uint8Array): void {
    const at = this.#leafCount++ * DIGEST_BYTES;
    if (at === this.#leaves.length) {
      const longer = new Uint8Array(2 * at);
      longer.set(this.#leaves);
      this.#leaves = longer;
    }
    this.#leaves.set(leaf, at);
  }
}

/** The tree over an object's leaves. It holds the leaves and the levels from the pieces up. */
export class Tree {
  readonly leaves: Uint8Array;
  /** The roots of the pieces, then the level above, up to the root. */
  readonly #levels: Uint8Array[];
  readonly #paddings: Uint8Array[];

  /** `pieceRoots`: as `pieceRootsOf` gives them, for a caller that has taken its time over them. */
  constructor(leaves: Uint8Array, hash: Hash, pieceRoots: Uint8Array = joined([...pieceRootsOf(leaves, hash)])) {
    this.leaves = leaves;
    this.#paddings = paddingsOf(hash);
    let level = pieceRoots;
    this.#levels = [level];
    for (let height = PIECE_HEIGHT; level.length > DIGEST_BYTES; height++) {
      level = parentsOf(level, this.#paddings[height]!, hash);
      this.#levels.push(level);
    }
  }

  /** 32 bytes. */
  get root(): Uint8Array {
    return this.#levels.at(-1)!;
  }

  /** The piece's leaves, then the digests beside the way from the piece to the root, the lowest first. */
  proofOf(piece: number): Uint8Array {
    const first = piece * PIECE_BLOCKS * DIGEST_BYTES;
    const parts = [this.leaves.subarray(first, first + PIECE_BLOCKS * DIGEST_BYTES)];
    let index = piece;
    for (const [above, level] of this.#levels.slice(0, -1).entries()) {
      parts.push(digestAt(level, index ^ 1) ?? this.#paddings[PIECE_HEIGHT + above]!);
      index >>= 1;
    }
    return joined(parts);
  }
}

/** The roots of an object's pieces, one after the other. Those of a long object take a while. */
export function* pieceRootsOf(leaves: Uint8Array, hash: Hash): Generator<Uint8Array> {
  const pieceLeavesBytes = PIECE_BLOCKS * DIGEST_BYTES;
  if (leaves.length === 0) yield hash(new Uint8Array());
  for (let at = 0; at < leaves.length; at += pieceLeavesBytes)
    yield pieceRootOf(leaves.subarray(at, at + pieceLeavesBytes), leaves.length <= pieceLeavesBytes, hash);
}

/** `isOnly`: the object has no other piece, so its tree is not higher than its blocks need. */
function pieceRootOf(leaves: Uint8Array, isOnly: boolean, hash: Hash): Uint8Array {
  const paddings = paddingsOf(hash);
  let [level, height] = [leaves, 0];
  for (let width = isOnly ? powerOfTwo(leaves.length / DIGEST_BYTES) : PIECE_BLOCKS; width > 1; width /= 2)
    level = parentsOf(level, paddings[height++]!, hash);
  return level;
}

/** The leaves of the piece if the proof is right, otherwise undefined. `proof` is as `Tree.proofOf` makes it. */
export function checkProof(
  { root, bytes }: ObjectName,
  piece: number,
  proof: Uint8Array,
  hash: Hash,
): Uint8Array | undefined {
  if (piece < 0 || piece >= pieceCountOf(bytes)) return undefined;
  if (proof.length !== proofDigestsOf(bytes, piece) * DIGEST_BYTES) return undefined;
  const leaves = proof.subarray(0, blocksOfPiece(bytes, piece) * DIGEST_BYTES);
  let level = pieceRootOf(leaves, pieceCountOf(bytes) === 1, hash);
  let index = piece;
  for (let at = leaves.length; at < proof.length; at += DIGEST_BYTES) {
    const beside = proof.subarray(at, at + DIGEST_BYTES);
    level = hash(joined(index % 2 === 0 ? [level, beside] : [beside, level]));
    index >>= 1;
  }
  return hexOf(level) === root ? leaves : undefined;
}

/** What names these bytes. */
export function objectNameOf(bytes: Uint8Array, hash: Hash): ObjectName {
  const leaves = new LeafMaker(hash);
  leaves.update(bytes);
  return { root: hexOf(new Tree(leaves.finish(), hash).root), bytes: bytes.length };
}

/** The digest with this number; undefined if there are not so many. */
export function digestAt(digests: Uint8Array, index: number): Uint8Array | undefined {
  const digest = digests.subarray(index * DIGEST_BYTES, (index + 1) * DIGEST_BYTES);
  return digest.length === DIGEST_BYTES ? digest : undefined;
}

export const hexOf = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

const PIECE_HEIGHT = Math.log2(PIECE_BLOCKS);
/** Of the tree over the most bytes that an id can name. */
const HEIGHT_MAX = 40;

/** By height: the root of a subtree without blocks. */
function paddingsOf(hash: Hash): Uint8Array[] {
  const known = PADDINGS.get(hash);
  if (known) return known;
  const paddings: Uint8Array[] = [new Uint8Array(DIGEST_BYTES)];
  while (paddings.length <= HEIGHT_MAX) paddings.push(hash(joined([paddings.at(-1)!, paddings.at(-1)!])));
  PADDINGS.set(hash, paddings);
  return paddings;
}

const PADDINGS = new WeakMap<Hash, Uint8Array[]>();

function parentsOf(level: Uint8Array, padding: Uint8Array, hash: Hash): Uint8Array {
  const count = Math.ceil(level.length / (2 * DIGEST_BYTES));
  const parents = new Uint8Array(count * DIGEST_BYTES);
  for (let index = 0; index < count; index++) {
    const pair = level.subarray(2 * index * DIGEST_BYTES, (2 * index + 2) * DIGEST_BYTES);
    parents.set(hash(pair.length === DIGEST_BYTES ? joined([pair, padding]) : pair), index * DIGEST_BYTES);
  }
  return parents;
}

const powerOfTwo = (count: number): number => 2 ** Math.ceil(Math.log2(count));

export function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
