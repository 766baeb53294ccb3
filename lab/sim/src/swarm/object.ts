/** The answer in a run of the swarm: its head, and the object of which the chunk is a part, if it is vouched for. */
import type { ResponseHead } from "@tributary/contract";
import { BLOCK_BYTES, DIGEST_BYTES, hexOf, joined, LeafMaker, Tree, type ObjectName } from "@tributary/contract/tree";
import { sha256 } from "../content";
import type { SwarmDraw } from "./draw";

/** The length of the whole resource in a run with a byte range. */
const RESOURCE_BYTES = 9_000_000;

/** A part of an object that ends with a whole block may end before the object. */
export function resourceBytesOf({ isVouched, chunkBytes, range }: SwarmDraw): number {
  if (!range) return chunkBytes;
  return isVouched && chunkBytes % BLOCK_BYTES !== 0 ? range.end + 1 : RESOURCE_BYTES;
}

/** `body`: the number of the body. Bodies whose parts may be joined have different validators. */
export function headOf(draw: SwarmDraw, body = 0): ResponseHead & { totalBytes: number } {
  const { chunkBytes, range, fillMs } = draw;
  const etag = { etag: fillMs ? `"${body}"` : '"1"' };
  if (!range) return { status: 200, totalBytes: chunkBytes, headers: etag };
  const told = `bytes ${range.start}-${range.end}/${resourceBytesOf(draw)}`;
  return { status: 206, totalBytes: chunkBytes, headers: { ...etag, "content-range": told } };
}

/** An object and its hash tree. Outside of the body only its leaves exist: nobody asks for those bytes. */
export function objectWith(body: Uint8Array, draw: SwarmDraw): { object: ObjectName; tree: Tree } {
  const bytes = resourceBytesOf(draw);
  const startBlock = (draw.range?.start ?? 0) / BLOCK_BYTES;
  const maker = new LeafMaker(sha256);
  maker.update(body);
  const own = maker.finish();
  const blocksAfter = Math.ceil(bytes / BLOCK_BYTES) - startBlock - own.length / DIGEST_BYTES;
  const other = (blocks: number): Uint8Array => new Uint8Array(blocks * DIGEST_BYTES).fill(7);
  const tree = new Tree(joined([other(startBlock), own, other(blocksAfter)]), sha256);
  return { object: { root: hexOf(tree.root), bytes }, tree };
}
