/** For tests of the command line: an origin with files of any kind, and the command as a child process. */
import { spawn, type ChildProcess, type StdioOptions } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";

export const CLI = path.resolve(__dirname, "../dist/cli.js");

export const bytesOf = (seed: number, size: number): Buffer =>
  Buffer.from(Array.from({ length: size }, (_, index) => (seed * 7 + index * 31 + (index >> 8)) & 255));

/** What a file of the origin is like at the moment. */
export interface OriginFile {
  body: Buffer;
  headers?: http.OutgoingHttpHeaders;
  status?: number;
  /** The connection breaks at this byte of the file. */
  breakAfter?: number;
  /** Waits at this byte of the file, until the test ends. */
  hangAfter?: number;
  /** What the file is like after this request. */
  next?: OriginFile;
}

export interface CommandOrigin {
  url: string;
  files: Map<string, OriginFile>;
  /** What was asked. */
  requests: { path: string; headers: http.IncomingHttpHeaders }[];
  close(): void;
}

export async function startOrigin(): Promise<CommandOrigin> {
  const files = new Map<string, OriginFile>();
  const requests: CommandOrigin["requests"] = [];
  const server = http.createServer((request, response) => {
    requests.push({ path: request.url ?? "", headers: request.headers });
    const file = files.get(request.url ?? "");
    if (!file) return void response.writeHead(404).end("nothing is here");
    if (file.next) files.set(request.url ?? "", file.next);
    answer(request, response, file);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}`, files, requests, close };
}

function answer(request: http.IncomingMessage, response: http.ServerResponse, file: OriginFile): void {
  const { body, headers, status = 200, breakAfter, hangAfter } = file;
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
  const start = Number(first ?? 0);
  const end = last ? Math.min(body.length, Number(last) + 1) : body.length;
  const isPart = first !== undefined && status === 200;
  const range = isPart ? { "content-range": `bytes ${start}-${end - 1}/${body.length}` } : {};
  response.writeHead(isPart ? 206 : status, { "content-length": end - start, ...range, ...headers });
  const stop = breakAfter ?? hangAfter;
  if (stop === undefined) return void response.end(body.subarray(start, end));
  response.write(body.subarray(start, Math.max(start, Math.min(end, stop))));
  if (breakAfter !== undefined) setTimeout(() => response.destroy(), 200);
}

export interface CommandRun {
  status: number | null;
  signal: NodeJS.Signals | null;
  stdout: Buffer;
  stderr: string;
}

export interface CommandOptions {
  cwd: string;
  env?: NodeJS.ProcessEnv;
  stdin?: string;
  stdio?: StdioOptions;
  during?(child: ChildProcess): void;
}

/** Runs `get WORDS` directly at the origin. No record is sent. */
export function get(words: readonly string[], options: CommandOptions): Promise<CommandRun> {
  return execute(process.execPath, [CLI, "get", "--mode", "direct", "--no-record", ...words], options);
}

export function execute(file: string, words: readonly string[], options: CommandOptions): Promise<CommandRun> {
  const { cwd, env, stdin = "", stdio = "pipe", during } = options;
  return new Promise((resolve) => {
    const child = spawn(file, words, { cwd, env: { ...process.env, ...env }, stdio });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout?.on("data", (piece: Buffer) => out.push(piece));
    child.stderr?.on("data", (piece: Buffer) => err.push(piece));
    child.stdin?.on("error", () => undefined).end(stdin);
    child.on("close", (status, signal) =>
      resolve({ status, signal, stdout: Buffer.concat(out), stderr: Buffer.concat(err).toString() }),
    );
    during?.(child);
  });
}

export function makeFolder(): { path: string; remove(): void } {
  const folder = mkdtempSync(path.join(os.tmpdir(), "tributary-get-"));
  return { path: folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
