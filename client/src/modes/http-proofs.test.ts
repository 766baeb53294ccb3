/** Who is convicted by proofs over HTTP (publications.md §7). The holders speak one after the other. */
import { randomBytes } from "node:crypto";
import { sha256 } from "@noble/hashes/sha2";
import { LeafMaker, Tree } from "@tributary/contract/tree";
import type { ActiveDownload } from "../active-download";
import { HttpProofs } from "./http-proofs";

const BYTES = randomBytes(60_000);
const leaves = new LeafMaker(sha256);
leaves.update(BYTES);
const tree = new Tree(leaves.finish(), sha256);
const TRUE = tree.proofOf(0);
const FALSE = TRUE.map((byte) => byte ^ 1);

/** Asks holders that give these proofs. Resolves when the blocks are known, or nobody is left. */
function ask(given: readonly Uint8Array[]): Promise<string[]> {
  const proxies = given.map((_, index) => ({ id: `${index}`, name: `p${index}`, url: `http://p${index}` }));
  const fetch = async (url: string): Promise<Response> => {
    return new Response(given[Number(new URL(url).hostname.slice(1))]!.slice());
  };
  const download = {
    platform: { fetch, hash: sha256 },
    tally: { addBytes: () => undefined },
    object: { object: { root: Buffer.from(tree.root).toString("hex"), bytes: BYTES.length }, id: "object" },
  } as unknown as ActiveDownload;
  const events: string[] = [];
  return new Promise((resolve) => {
    const end = (event: string): void => {
      proofs.stop();
      resolve([...events, event]);
    };
    const proofs = new HttpProofs(download, proxies, undefined, {
      onPlan: () => undefined,
      onKnown: () => end(`known ${proofs.isKnown(0)}`),
      onProxyFailed: (index, { kind }) => events.push(`${index} ${kind}`),
      onUndecided: ({ kind }) => end(`undecided ${kind}`),
    });
  });
}

test("http proofs: a holder that tells the truth after liars is not convicted with them", async () => {
  expect(await ask([FALSE, FALSE, FALSE, TRUE])).toEqual([
    "0 proofWrong",
    "1 proofWrong",
    "2 proofWrong",
    "known true",
  ]);
});

test("http proofs: if all holders lie, nothing is decided", async () => {
  expect(await ask([FALSE, FALSE])).toEqual(["0 proofWrong", "1 proofWrong", "undecided proofWrong"]);
});

test("http proofs: a proof that is too short or too long does not count, and the next holder is asked", async () => {
  const long = new Uint8Array(TRUE.length + 1);
  expect(await ask([TRUE.subarray(1), long, TRUE])).toEqual(["0 proofWrong", "1 proofWrong", "known true"]);
});
