/** `tributary swarm`: distributes a file to many peers on this machine, each a process, over emulated links. */
import { createHash } from "node:crypto";
import { access, constants, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import { DEPENDENCE_CHECKS, PEER_SCHEMES, type DependenceCheck, type PeerScheme } from "@tributary/protocol";
import { Swarm, SwarmError, UPSTREAM } from "../swarm/run";
import { Exit, STATUS, UsageError } from "./exit";
import { fileFault } from "./faults";
import { byteCount, wholeNumber } from "./options";
import { unlessStopped } from "./signals";
import { swarmLine, swarmPlot, swarmResult, swarmSummary } from "./swarm-view";
import { jsonLine, LiveLine, print } from "./terminal";

/** A process takes about 70 MB. */
const PEERS_MAX = 256;
/** The codec's limits. */
const BLOCKS_MAX = 256;
const BLOCK_BYTES_MAX = 65_536;
const BLOCK_BYTES_DEFAULT = 32_768;
const SEED_MAX = 0xffff_ffff;
const PORT_MIN = 1024;
const PORT_MAX = 65_535;
const DRAW_MS = 200;

interface SwarmWords {
  peers: number;
  scheme: PeerScheme;
  density: number;
  aggressiveness: number;
  check: DependenceCheck;
  blockSize: number;
  seed: number;
  port: number;
  outputDir?: string;
  json?: string;
  plot?: string;
}

export function swarmCommand(): Command {
  return new Command("swarm")
    .description(
      "Distribute a file from one process to many on this machine, over emulated links: 30 % Ethernet (1 MB/s), " +
        `70 % DSL (50 to 80 KB/s up, 100 to 200 KB/s down), ${UPSTREAM} upstream neighbours each.`,
    )
    .argument("<file>", "what is distributed")
    .option("--peers <n>", `processes that get the file, 1..${PEERS_MAX}`, within(1, PEERS_MAX), 64)
    .option("--block-size <bytes>", `bytes of a block, 1..${BLOCK_BYTES_MAX}`, blockBytes, BLOCK_BYTES_DEFAULT)
    .option("--seed <n>", "draws the links and the neighbours", within(0, SEED_MAX), 1)
    .option("--port <n>", "first of the ports on 127.0.0.1, one for each process (default: free ports)", port, 0)
    .optionsGroup("Scheme:")
    .addOption(new Option("--scheme <name>", "what peers send").choices(PEER_SCHEMES).default("coding"))
    .option("--density <share>", "coding: share of the blocks that are combined", share, 1)
    .option("--aggressiveness <share>", "coding: share of the blocks that a peer holds before it serves", share, 0.01)
    .addOption(
      new Option("--check <when>", "coding: when a block that brings nothing new is found")
        .choices(DEPENDENCE_CHECKS)
        .default("ahead"),
    )
    .optionsGroup("Results:")
    .option("--output-dir <folder>", "keep the file of each peer here (default: they are compared and removed)")
    .option("--json <file>", "write the figures of every peer")
    .option("--plot <file>", "draw how many peers are complete over time, as SVG", svgName)
    .action(swarm);
}

async function swarm(file: string, words: SwarmWords): Promise<void> {
  const source = await sourceOf(file, words.blockSize);
  for (const target of [words.json, words.plot]) if (target !== undefined) await checkFolder(target);
  if (words.port + words.peers > PORT_MAX)
    throw new UsageError(
      `--port: got ${words.port}, allowed ${PORT_MIN}..${PORT_MAX - words.peers} for this many peers.`,
    );
  const folder = await folderOf(words.outputDir);
  try {
    await runInto(folder, file, source, words);
  } finally {
    if (words.outputDir === undefined) await rm(folder, { recursive: true, force: true });
  }
}

async function runInto(folder: string, file: string, source: Buffer, words: SwarmWords): Promise<void> {
  const { peers, scheme, density, aggressiveness, check, blockSize: blockBytes, seed, port } = words;
  const blockCount = Math.ceil(source.length / blockBytes);
  const settings = { scheme, density, aggressiveness, check, blockBytes, seed, peers, blockCount };
  const fileOf = (id: number): string => path.join(folder, `peer-${id}`);
  const line = new LiveLine();
  const run = new Swarm({ ...settings, source: path.resolve(file), fileBytes: source.length, port, fileOf });
  const startMs = performance.now();
  const draw = (): void =>
    line.draw((columns) => swarmLine(run.peers, blockCount, performance.now() - startMs, columns));
  const timer = setInterval(draw, DRAW_MS);
  try {
    await unlessStopped(run.run());
    draw();
  } catch (error) {
    throw error instanceof SwarmError ? new Exit(STATUS.failed, error.message) : error;
  } finally {
    clearInterval(timer);
    line.end();
    run.kill();
  }
  const sha256 = digestOf(source);
  const wrong: string[] = [];
  for (const { id, completeMs } of run.peers.slice(1)) {
    if (completeMs === undefined) continue;
    const got = digestOf(await readFile(fileOf(id)));
    if (got !== sha256) wrong.push(`Peer ${id} has the SHA-256 ${got}, wanted ${sha256}.`);
  }
  const result = swarmResult({ ...settings, file, fileBytes: source.length, sha256 }, run.peers);
  if (words.json !== undefined) await writeTo(words.json, jsonLine(result));
  if (words.plot !== undefined) await writeTo(words.plot, swarmPlot(result));
  print(swarmSummary(result));
  if (wrong.length > 0) throw new Exit(STATUS.failed, wrong.join("\n"));
  if (result.complete === 0) throw new Exit(STATUS.failed, "No peer got the file.");
}

async function sourceOf(file: string, blockBytes: number): Promise<Buffer> {
  const most = BLOCKS_MAX * blockBytes;
  try {
    const found = await stat(file);
    if (found.isDirectory()) throw Object.assign(new Error(), { code: "EISDIR" });
    if (found.isFile() && found.size > most) throw tooLong(file, found.size, blockBytes);
    const content = await readFile(file);
    if (content.length === 0) throw new Exit(STATUS.failed, `${file} has 0 bytes; a swarm needs at least 1.`);
    if (content.length > most) throw tooLong(file, content.length, blockBytes);
    return content;
  } catch (error) {
    throw fileFault("read", file, error);
  }
}

function tooLong(file: string, bytes: number, blockBytes: number): Exit {
  const [blocks, most] = [Math.ceil(bytes / blockBytes), BLOCKS_MAX * BLOCK_BYTES_MAX];
  const hint = bytes <= most ? " Take a larger --block-size." : ` The largest file has ${most} bytes.`;
  return new Exit(
    STATUS.failed,
    `${file} has ${bytes} bytes, which are ${blocks} blocks of ${blockBytes}; ` +
      `the limit is ${BLOCKS_MAX} blocks.${hint}`,
  );
}

async function folderOf(named: string | undefined): Promise<string> {
  if (named === undefined) return mkdtemp(path.join(os.tmpdir(), "tributary-swarm-"));
  try {
    await mkdir(named, { recursive: true });
    await access(named, constants.W_OK);
  } catch (error) {
    throw fileFault("write", named, error);
  }
  return named;
}

/** A run takes minutes, so it does not begin if its results cannot be kept. */
async function checkFolder(target: string): Promise<void> {
  await access(path.dirname(path.resolve(target)), constants.W_OK).catch((error: unknown) => {
    throw fileFault("write", target, error);
  });
}

async function writeTo(target: string, text: string): Promise<void> {
  await writeFile(target, text).catch((error: unknown) => {
    throw fileFault("write", target, error);
  });
}

const digestOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

function within(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : NaN;
    if (!(value >= least && value <= most))
      throw new InvalidArgumentError(`Allowed: a whole number, ${least}..${most}.`);
    return value;
  };
}

function blockBytes(text: string): number {
  const bytes = byteCount(text);
  if (bytes > BLOCK_BYTES_MAX) throw new InvalidArgumentError(`Allowed: 1..${BLOCK_BYTES_MAX} bytes.`);
  return bytes;
}

function port(text: string): number {
  const value = wholeNumber(text);
  if (value < PORT_MIN || value > PORT_MAX) throw new InvalidArgumentError(`Allowed: ${PORT_MIN}..${PORT_MAX}.`);
  return value;
}

function share(text: string): number {
  const value = /^\d*\.?\d+$/.test(text) ? Number(text) : 0;
  if (value <= 0 || value > 1) throw new InvalidArgumentError("Allowed: a number above 0 and at most 1.");
  return value;
}

function svgName(text: string): string {
  if (!text.endsWith(".svg")) throw new InvalidArgumentError("Allowed: a name that ends in .svg.");
  return text;
}
