import { createHash } from "node:crypto";
import { AT_ONCE_BYTES_MAX, createHasher } from "./hasher-browser";
import type { Hasher } from "./platform";

const sha256Of = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const bytesOf = (length: number): Uint8Array => Uint8Array.from({ length }, (_, at) => (at * 31) % 251);

function counted() {
  const made: { bytes: number; discarded: boolean }[] = [];
  const inPieces = (): Hasher => {
    const hash = createHash("sha256");
    const seen = { bytes: 0, discarded: false };
    made.push(seen);
    return {
      update: (bytes) => void ((seen.bytes += bytes.length), hash.update(bytes)),
      digest: () => Promise.resolve(hash.digest("hex")),
      discard: () => void (seen.discarded = true),
    };
  };
  return { made, inPieces };
}

test("hasher: the browser hashes a segment whose pieces were overwritten after they were given", async () => {
  const { made, inPieces } = counted();
  const hasher = createHasher(inPieces);
  const body = bytesOf(150_001);
  for (let at = 0; at < body.length; at += 65_536) {
    const piece = body.slice(at, at + 65_536);
    hasher.update(piece);
    piece.fill(0);
  }
  expect([await hasher.digest(), made]).toEqual([sha256Of(body), []]);
  expect(await createHasher(inPieces).digest()).toBe(sha256Of(new Uint8Array(0)));
});

test("hasher: a long body, or a browser without a hash, is hashed piece by piece from the first byte", async () => {
  const { made, inPieces } = counted();
  const body = bytesOf(AT_ONCE_BYTES_MAX + 2);
  const hasher = createHasher(inPieces);
  hasher.update(body.subarray(0, AT_ONCE_BYTES_MAX));
  expect(made).toEqual([]);
  hasher.update(body.subarray(AT_ONCE_BYTES_MAX, -1));
  hasher.update(body.subarray(-1));
  expect([await hasher.digest(), made]).toEqual([sha256Of(body), [{ bytes: body.length, discarded: false }]]);
  hasher.discard();
  expect(made[0]!.discarded).toBe(true);

  const own = Object.getOwnPropertyDescriptor(globalThis, "crypto")!;
  Object.defineProperty(globalThis, "crypto", { value: {}, configurable: true });
  const without = createHasher(inPieces);
  Object.defineProperty(globalThis, "crypto", own);
  without.update(body.subarray(0, 10));
  expect(await without.digest()).toBe(sha256Of(body.subarray(0, 10)));
});
