/**
 * The process of one swarm peer. run.ts starts it and gives it orders. It ends with the channel to that process, so
 * that none is left behind, however the other one ends.
 */
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { loadCodec } from "@tributary/native-codec";
import { xorshift128 } from "@tributary/protocol";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import type { FromPeer, PeerOrder, ToPeer } from "./messages";
import { SwarmNode } from "./node";

const PROGRESS_MS = 250;

class PeerProcess {
  #node!: SwarmNode;
  #startMs = 0;
  #innovative = -1;

  handle(message: ToPeer): void {
    if (message.kind === "begin") this.#begin(message);
    if (message.kind === "join") this.#join(message.ports);
    if (message.kind === "start") this.#start();
    if (message.kind === "stop") this.#stop();
  }

  #begin(order: PeerOrder): void {
    const { id, token, fileBytes, blockCount, blockBytes, seed, file } = order;
    const source = id === 0 ? new Uint8Array(blockCount * blockBytes) : undefined;
    source?.set(readFileSync(file).subarray(0, fileBytes));
    this.#node = new SwarmNode({
      ...order,
      codec: loadCodec(loadWasmCodec, () => undefined),
      token: Buffer.from(token, "hex"),
      rng: xorshift128(seed * 65_537 + id),
      source,
      onComplete: (content) => void this.#keep(file, content.subarray(0, fileBytes)),
      onIsolated: () => tell({ kind: "isolated" }),
    });
    this.#node.listen(order.port).then((port) => tell({ kind: "listening", port }), fail);
  }

  #join(ports: readonly number[]): void {
    this.#node.join((id) => ports[id]!).then(() => tell({ kind: "joined" }), fail);
  }

  #start(): void {
    this.#startMs = performance.now();
    this.#node.start();
    setInterval(() => this.#report(), PROGRESS_MS);
  }

  #report(): void {
    const { innovative } = this.#node.blocks;
    if (innovative === this.#innovative) return;
    this.#innovative = innovative;
    tell({ kind: "progress", innovative, receivedBytes: this.#node.counts.receivedBytes });
  }

  async #keep(file: string, content: Uint8Array): Promise<void> {
    const ms = performance.now() - this.#startMs;
    try {
      await writeFile(file, content);
      tell({ kind: "complete", ms });
    } catch (error) {
      fail(error);
    }
  }

  #stop(): void {
    const { counts, blocks, faults } = this.#node;
    const { user, system } = process.cpuUsage();
    const memoryBytes = 1024 * process.resourceUsage().maxRSS;
    const { received, innovative } = blocks;
    const all = { ...counts, received, innovative, faults };
    this.#node.close();
    tell({ kind: "ended", counts: all, cpuMs: (user + system) / 1000, memoryBytes });
    process.disconnect();
  }
}

function tell(message: FromPeer): void {
  if (process.connected) process.send!(message);
}

function fail(error: unknown): void {
  tell({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
}

const peer = new PeerProcess();
process.on("message", (message: ToPeer) => peer.handle(message));
process.on("disconnect", () => process.exit());
