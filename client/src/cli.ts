/** The command line: `npm run -s tributary -- get URL`. Arguments: cli-args.ts. Text for people: cli-view.ts. */
import { createWriteStream } from "node:fs";
import type { Writable } from "node:stream";
import { finished } from "node:stream/promises";
import type { Download } from "./api";
import { HELP, parseCommand, type Command, type GetCommand } from "./cli-args";
import { progressLine, summary } from "./cli-view";
import { messageOf, RequestError } from "./errors";
import { createNodeClient, type ProxyClient } from "./node";

const PROGRESS_EVERY_MS = 100;

const EXIT = { worked: 0, failed: 1, usage: 2, interrupted: 130 } as const;

async function main(command: Command): Promise<number> {
  switch (command.command) {
    case "help":
      process.stdout.write(HELP);
      return EXIT.worked;
    case "usageError":
      return usageError(command.message);
    case "proxies":
      return listProxies(command.origoUrl, command.json);
    case "get":
      return get(command);
  }
}

function usageError(message: string): number {
  process.stderr.write(`tributary: ${message} Try --help.\n`);
  return EXIT.usage;
}

async function listProxies(origoUrl: string, json: boolean): Promise<number> {
  const client = createNodeClient({ origoUrl, source: "cli", reportRecords: false });
  try {
    const proxies = await client.proxies();
    if (json) process.stdout.write(`${JSON.stringify({ proxies })}\n`);
    else for (const { name, url, id } of proxies) process.stdout.write(`${name}\t${url}\t${id}\n`);
    if (!json && proxies.length === 0) process.stderr.write("No proxy is live.\n");
    return EXIT.worked;
  } catch (error) {
    process.stderr.write(`tributary: ${messageOf(error)}\n`);
    return EXIT.failed;
  } finally {
    await client.close();
  }
}

async function get(command: GetCommand): Promise<number> {
  const client = createNodeClient({ origoUrl: command.origoUrl, transport: command.transport, source: "cli" });
  const download = client.get(command.url, command.options);
  let interrupted = false;
  const interrupt = (): void => {
    interrupted = true;
    download.abort("interrupted");
  };
  process.once("SIGINT", interrupt);
  process.once("SIGTERM", interrupt);
  const stopProgress = showProgress(client, download);
  const writing = await writeBody(command, download);
  const record = await download.record;
  stopProgress();
  if (command.json) process.stdout.write(`${JSON.stringify(record)}\n`);
  else process.stderr.write(summary(record));
  await client.close();
  if (interrupted) return EXIT.interrupted;
  if (writing === "readerGone") return EXIT.worked;
  if (writing !== "written") return failure(writing.problem);
  if (record.outcome !== "complete") return failure(`${record.error?.kind}: ${record.error?.message}`);
  return record.status >= 400 ? failure(`the origin answered ${record.status}`) : EXIT.worked;
}

function failure(problem: string): number {
  process.stderr.write(`tributary: ${problem}\n`);
  return EXIT.failed;
}

type Writing = "written" | "readerGone" | { problem: string };

/** Writes the body to the output. A failed download is not a failed write. */
async function writeBody({ output, json }: GetCommand, download: Download): Promise<Writing> {
  const toScreen = output === undefined && !json && process.stdout.isTTY;
  if (toScreen)
    process.stderr.write("The bytes are discarded: name a file with --output, or redirect standard output.\n");
  const target = output !== undefined ? createWriteStream(output) : json || toScreen ? undefined : process.stdout;
  let problem: NodeJS.ErrnoException | undefined;
  const noteProblem = (error: NodeJS.ErrnoException): void => {
    problem ??= error;
    download.abort(`the output failed: ${error.message}`);
  };
  target?.on("error", noteProblem);
  try {
    for await (const piece of download.body) if (target) await write(target, piece);
  } catch {
    await download.record;
  }
  if (target && !problem) await end(target, output !== undefined).catch(noteProblem);
  if (!problem) return "written";
  return problem.code === "EPIPE" ? "readerGone" : { problem: `The output failed: ${problem.message}` };
}

/** Resolves when the target has room for more bytes, or has failed. */
function write(target: Writable, piece: Uint8Array): Promise<void> | undefined {
  if (target.destroyed || target.write(piece)) return undefined;
  return new Promise((resolve) => {
    const done = (): void => {
      for (const event of ["drain", "error", "close"]) target.off(event, done);
      resolve();
    };
    for (const event of ["drain", "error", "close"]) target.on(event, done);
  });
}

/** Resolves when the target has taken all bytes. An error of standard output arrives as its own event. */
async function end(target: Writable, isFile: boolean): Promise<void> {
  if (isFile) {
    target.end();
    await finished(target);
  } else await new Promise<void>((resolve) => target.write("", () => resolve()));
}

function showProgress(client: ProxyClient, download: Download): () => void {
  if (!process.stderr.isTTY) return () => undefined;
  const startedMs = performance.now();
  let totalBytes: number | null = null;
  download.head.then(
    (head) => (totalBytes = head.totalBytes),
    () => undefined,
  );
  const show = (): void => {
    const { live } = client;
    const progress = {
      deliveredBytes: live.deliveredBytes,
      totalBytes,
      elapsedMs: performance.now() - startedMs,
      live,
    };
    process.stderr.write(`\r\x1b[K${progressLine(progress, process.stderr.columns - 1)}`);
  };
  const timer = setInterval(show, PROGRESS_EVERY_MS);
  return () => {
    clearInterval(timer);
    show();
    process.stderr.write("\n");
  };
}

/** Exits when standard output and standard error have taken all text. */
function exit(status: number): void {
  const open = [process.stdout, process.stderr].filter((stream) => stream.writableLength > 0 && !stream.destroyed);
  let left = open.length;
  if (left === 0) process.exit(status);
  for (const stream of open) stream.write("", () => --left === 0 && process.exit(status));
}

process.stdout.on("error", () => undefined);
process.stderr.on("error", () => undefined);
main(parseCommand(process.argv.slice(2))).then(exit, (error: unknown) => {
  if (error instanceof RequestError) exit(usageError(error.message));
  else exit(failure(messageOf(error)));
});
