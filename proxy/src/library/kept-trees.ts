/** The trees of the objects that were used last. The number of their leaves is bounded. */
import type { Tree } from "@tributary/contract/tree";

/** 32 bytes for each 16 KiB: the trees of 64 GiB, as large as a library is by default. */
const LEAVES_BYTES_MAX = 128 * 1024 * 1024;
/** A tree takes this much besides its leaves. */
const TREE_BYTES = 512;

export class KeptTrees {
  /** The least recently used one first. */
  readonly #trees = new Map<string, Tree>();
  #bytes = 0;

  get(id: string): Tree | undefined {
    const tree = this.#trees.get(id);
    if (tree) {
      this.#trees.delete(id);
      this.#trees.set(id, tree);
    }
    return tree;
  }

  add(id: string, tree: Tree): void {
    this.delete(id);
    this.#trees.set(id, tree);
    this.#bytes += bytesOf(tree);
    for (const oldest of this.#trees.keys()) {
      if (this.#bytes <= LEAVES_BYTES_MAX) break;
      this.delete(oldest);
    }
  }

  delete(id: string): void {
    const tree = this.#trees.get(id);
    if (!tree) return;
    this.#trees.delete(id);
    this.#bytes -= bytesOf(tree);
  }
}

const bytesOf = ({ leaves }: Tree): number => TREE_BYTES + leaves.length;
