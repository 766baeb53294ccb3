/**
 * Bugs to plant into the protocol's source. They prove that the swarm finds bugs. Each has a text that stands exactly
 * once in its file, the text that replaces it, and the seed of a run that finds it. Data only.
 * `npm run sim -- planted --search` finds seeds.
 */
export interface PlantedBug {
  name: string;
  /** In protocol/src. */
  file: string;
  find: string;
  replace: string;
  seed: number;
}

export const PLANTED: readonly PlantedBug[] = [
  {
    name: "symbol index not checked against the generation",
    file: "receiver/assembly.ts",
    find: 'if (coding.kind === "systematic") return coding.symbolIndex < symbolCount;',
    replace: 'if (coding.kind === "systematic") return true;',
    seed: 77,
  },
  {
    name: "payload of any length accepted",
    file: "receiver/assembly.ts",
    find: " || payloadBytes !== geometry.symbolBytes",
    replace: "",
    seed: 198,
  },
  {
    name: "digest not checked",
    file: "receiver/proofs.ts",
    find: "!sameBytes(this.#hash(bytes.subarray(at, at + BLOCK_BYTES)), leaf)",
    replace: "bytes.length === 0",
    seed: 4,
  },
  {
    name: "plan not compared with the object",
    file: "receiver/receiver.ts",
    find: "(this.#proofs && plans.differenceOf(this.#proofs.head, head)) ??",
    replace: "",
    seed: 53,
  },
  {
    name: "bytes delivered twice",
    file: "receiver/receiver.ts",
    find: 'this.#events.push({ kind: "bytes", ...next });',
    replace: 'this.#events.push({ kind: "bytes", ...next }, { kind: "bytes", ...next });',
    seed: 1,
  },
  {
    name: "one byte of padding delivered at the end",
    file: "geometry.ts",
    find: "Math.min(geometry.totalBytes - start,",
    replace: "Math.min(geometry.totalBytes - start + 1,",
    seed: 1,
  },
  {
    name: "last generation treated as a full one",
    file: "geometry.ts",
    find: "return Math.min(geometry.generationSize, geometry.symbolCount - index * geometry.generationSize);",
    replace: "return geometry.symbolCount > index * geometry.generationSize ? geometry.generationSize : 0;",
    seed: 8,
  },
  {
    name: "generation solved one symbol too early",
    file: "receiver/verification.ts",
    find: "if (solver.rank === this.#options.symbolCount) this.#solved(solver, proxyIndex);",
    replace: "if (solver.rank >= this.#options.symbolCount - 1) this.#solved(solver, proxyIndex);",
    seed: 2,
  },
  {
    name: "missing rank counted one too low",
    file: "receiver/assembly.ts",
    find: "0 : symbolsIn(this.#geometry, index) - this.#degrees[index]!;",
    replace: "0 : Math.max(0, symbolsIn(this.#geometry, index) - this.#degrees[index]! - 1);",
    seed: 1,
  },
  {
    name: "truthful proxies blamed instead of liars",
    file: "receiver/verification.ts",
    find: "if (sameBytes(expected, payload)) continue;",
    replace: "if (!sameBytes(expected, payload)) continue;",
    seed: 4,
  },
  {
    name: "a dispute not told to the senders",
    file: "receiver/assembly.ts",
    find: "this.epoch += generation.takenBack;",
    replace: "",
    seed: 631,
  },
  {
    name: "encoder of the settlement leaked",
    file: "receiver/verification.ts",
    find: "    encoder.free();",
    replace: "",
    seed: 4,
  },
  {
    name: "encoders of a finished sender leaked",
    file: "sender/sender.ts",
    find: "    this.free();",
    replace: "",
    seed: 1,
  },
  {
    name: "timer of the final feedback lost",
    file: "receiver/outbox.ts",
    find: "if (proxy.final) at = Math.min(at, proxy.final.dueMs);",
    replace: "",
    seed: 6,
  },
  {
    name: "final feedback repeated without limit",
    file: "receiver/outbox.ts",
    find: "final.tries === TIMING.finalTries",
    replace: "final.tries === Infinity",
    seed: 6,
  },
  {
    name: "sender waits without end for its client",
    file: "sender/sender.ts",
    find: "if (nowMs - this.#lastHeardMs >= TIMING.clientSilenceMs) {",
    replace: "if (nowMs - this.#lastHeardMs === Infinity) {",
    seed: 3,
  },
  {
    name: "lost proxy not accepted again",
    file: "receiver/receiver.ts",
    find: 'proxy.lost ||= proxy.silent || proxy.stats.state !== "failed";',
    replace: "",
    seed: 63,
  },
  {
    name: "lost session goes unnoticed",
    file: "receiver/receiver.ts",
    find: 'this.#failProxy(proxy, { kind: "proxyLost", message: reason }, nowMs, false);',
    replace: "",
    seed: 682,
  },
  {
    name: "early data dropped without being counted",
    file: "receiver/receiver.ts",
    find: 'for (const { frame, atMs } of proxy.early.splice(0)) this.#count(proxy, 0, "late", atMs, frame);',
    replace: "proxy.early.length = 0;",
    seed: 96,
  },
  {
    name: "grant sequence used again",
    file: "planner/grant-echoes.ts",
    find: "this.#grantSequence += repeats ? ECHO_VALUES : 1;",
    replace: "this.#grantSequence ||= 1;",
    seed: 110,
  },
  {
    name: "generation sent before its bytes are there",
    file: "sender/granted-schedule.ts",
    find: "if (availableBytes < endBytes) return undefined;",
    replace: "",
    seed: 6,
  },
  {
    name: "lost symbol not sent again",
    file: "sender/schedule.ts",
    find: "if (!this.#received[symbol]) this.#insert(symbol);",
    replace: "",
    seed: 154,
  },
  {
    name: "useful proxy counted as useless",
    file: "planner/packet-loss.ts",
    find: "if (!useful) this.#useless++;",
    replace: "if (useful) this.#useless++;",
    seed: 48,
  },
  {
    name: "announced digests not compared with the bytes",
    file: "receiver/agreement.ts",
    find: "return this.#decided[index] === keyOf(digest);",
    replace: "return true;",
    seed: 62,
  },
  {
    name: "wrong proofs taken for true ones",
    file: "receiver/proofs.ts",
    find: "if (!checkProof(this.#object, proof.piece, digests, this.#hash)) return void liars.add(proxyIndex);",
    replace: "checkProof(this.#object, proof.piece, digests, this.#hash);",
    seed: 53,
  },
  {
    name: "bytes that wait for a proof not checked when it comes",
    file: "receiver/receiver.ts",
    find: "for (let index = first; index <= last; index++) this.#assembly?.recheck(index);",
    replace: "",
    seed: 181,
  },
  {
    name: "digests after a gap taken for the missing ones",
    file: "receiver/agreement.ts",
    find: "if (firstGeneration > proxy.count) return;",
    replace: "",
    seed: 321,
  },
  {
    name: "lost digests not announced again",
    file: "sender/announcer.ts",
    find: "    this.#next = this.#heard;",
    replace: "",
    seed: 862,
  },
];
