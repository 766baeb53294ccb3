/** `tributary get`: its options, and the addresses one after another. download.ts fetches one of them. */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { Command } from "commander";
import { createNodeClient } from "../node";
import { parseChecksum } from "./checksum";
import { fetchInto } from "./download";
import { Exit, STATUS } from "./exit";
import { fileFault } from "./faults";
import { jobsOf, type GetWords } from "./jobs";
import { paced } from "./pace";
import { addProxyOptions, each, proxyOptionsOf, trustAsTold } from "./options";
import { addRequestOptions, askedOf } from "./requests";
import { RevisionsFile } from "./revisions-file";
import { stopped, unlessStopped } from "./signals";
import { say } from "./terminal";
import { addVideoOptions } from "./video";

export function getCommand(): Command {
  const command = new Command("get")
    .description("Fetch addresses through several proxies at once.")
    .argument("[urls...]", "URLs with http or https")
    .option("-i, --input-file <file>", "read addresses from a file, one a line; - is standard input", each)
    .optionsGroup("Files:")
    .option("-o, --output <file>", "write to a file; - is standard output; once for each address", each)
    .option("-O, --remote-name", "name the file as the address does")
    .option("-J, --remote-header-name", "name the file as the server does, else as the address does")
    .option("--output-dir <folder>", "put files into this folder")
    .option("-c, --continue", "go on with what an earlier run left")
    .option("-R, --remote-time", "give the file the time that the server says")
    .option("--checksum <type=hex>", "fail if the file has another digest, e.g. sha-256=...", parseChecksum);
  addRequestOptions(command);
  addVideoOptions(command);
  addProxyOptions(command);
  return command
    .optionsGroup("Messages:")
    .option("-q, --quiet", "print errors only")
    .option("--json", "print one JSON object for each download, and no bytes")
    .action(get);
}

async function get(urls: string[], words: GetWords): Promise<void> {
  const addresses = [...urls, ...(await listed(words.inputFile ?? []))];
  const given = proxyOptionsOf(words);
  const tasks = jobsOf(addresses, words).map((job) => {
    const { url, options, forOrigin } = askedOf(job.url, words, given);
    return { job: { ...job, url }, options, forOrigin };
  });
  await trustAsTold(words);
  const client = createNodeClient({
    origoUrl: words.origo,
    transport: words.transport,
    source: "cli",
    reportRecords: words.record,
    seenRevisions: new RevisionsFile(),
    ...(words.limitRate === undefined ? {} : { settings: inSteps(words.limitRate) }),
  });
  const source = paced(client, words.limitRate);
  let status: number = STATUS.worked;
  try {
    for (const { job, options, forOrigin } of tasks) {
      if (tasks.length > 1 && !words.quiet) say(`${job.url}\n`);
      if (forOrigin.length > 0 && words.mode !== "direct" && !words.quiet) say(whyDirect(forOrigin));
      const problem = await fetchInto(source, job, options).catch((error: unknown) => asExit(error, tasks.length));
      if (stopped.aborted) break;
      if (!problem) continue;
      status = problem.status;
      say(`tributary: ${problem.message}\n`);
    }
  } finally {
    await client.close();
  }
  if (status !== STATUS.worked) throw new Exit(status);
}

const whyDirect = (names: readonly string[]): string =>
  `Direct: this is for the origin alone, and proxies never get it: ${names.join(", ")}.\n`;

/** One wrong address of several does not stop the others. */
function asExit(error: unknown, jobCount: number): Exit {
  if (error instanceof Exit) return error;
  if (jobCount > 1 && error instanceof Error) return new Exit(STATUS.failed, error.message);
  throw error;
}

const STEP_BYTES_MIN = 65_536;

/** Proxies send a chunk as fast as they can, so a limited rate asks for chunks of about one second. */
function inSteps(bytesPerSec: number): { chunkBytesMax: number; cutBytes: number; queuedBytesMax: number } {
  const bytes = Math.max(STEP_BYTES_MIN, Math.min(bytesPerSec, 8_000_000));
  return { chunkBytesMax: bytes, cutBytes: bytes, queuedBytesMax: bytes };
}

/** The addresses of input lists. Empty lines and lines with # at their start are left out. */
async function listed(files: readonly string[]): Promise<string[]> {
  const addresses: string[] = [];
  for (const file of files) {
    const input = file === "-" ? process.stdin : createReadStream(file);
    try {
      await unlessStopped(readLines(input, addresses));
    } catch (error) {
      throw fileFault("read", file === "-" ? "standard input" : file, error);
    } finally {
      input.destroy();
    }
  }
  return addresses;
}

async function readLines(input: NodeJS.ReadableStream, addresses: string[]): Promise<void> {
  const failed = new Promise<never>((_, reject) => input.once("error", reject));
  const read = async (): Promise<void> => {
    for await (const line of createInterface({ input, crlfDelay: Infinity })) {
      const address = line.replace(/^\ufeff/, "").trim();
      if (address !== "" && !address.startsWith("#")) addresses.push(address);
    }
  };
  await Promise.race([read(), failed]);
}
