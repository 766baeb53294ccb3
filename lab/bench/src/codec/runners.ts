/** The processes that measure, behind `Runner`: programs that read and write lines, and a Worker in a Chromium. */
import { spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { createInterface } from "node:readline";
import { openBrowser, repoRoot } from "@tributary/lab-stack";
import type { Runner } from "./driver";

const moduleDir = path.join(repoRoot, "wasm-codec/module");
const moduleNames = (): string[] =>
  readdirSync(moduleDir)
    .filter((name) => name.endsWith(".wasm"))
    .sort();

/** A program that answers each line on its stdin with one on its stdout. */
export function startProgram(file: string, args: readonly string[] = []): Runner {
  const child = spawn(file, args, { stdio: ["pipe", "pipe", "inherit"] });
  const waiting: { resolve: (line: string) => void; reject: (error: Error) => void }[] = [];
  let end: Error | undefined;
  const fail = (error: Error): void => {
    end ??= error;
    for (const { reject } of waiting.splice(0)) reject(error);
  };
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  createInterface({ input: child.stdout }).on("line", (line) => waiting.shift()?.resolve(line));
  child.once("error", fail);
  child.stdin.once("error", fail);
  child.once("close", (code, signal) =>
    fail(new Error(`${[path.basename(file), ...args.slice(-1)].join(" ")} ended (${signal ?? `exit status ${code}`})`)),
  );
  return {
    request: (line) =>
      new Promise((resolve, reject) => {
        if (end) return reject(end);
        waiting.push({ resolve, reject });
        child.stdin.write(`${line}\n`);
      }),
    close: () => {
      child.stdin.end();
      return ended;
    },
  };
}

const nodeRunnerFile = path.join(__dirname, "node-runner.js");

/** Node 20 has relaxed SIMD behind a flag, which newer versions do not know. */
function relaxedSimdFlag(): string[] {
  const flag = "--experimental-wasm-relaxed-simd";
  return Number(process.versions.node.split(".")[0]) < 22 ? [flag] : [];
}

export function startNodeWasm(): Runner {
  return startProgram(process.execPath, [
    ...relaxedSimdFlag(),
    nodeRunnerFile,
    "wasm",
    ...moduleNames().map((name) => path.join(moduleDir, name)),
  ]);
}

export function startNodeAddon(): Runner {
  return startProgram(process.execPath, [nodeRunnerFile, "addon"]);
}

const PAGE = `<!doctype html><title>codec bench</title><script>
  const worker = new Worker("worker.js");
  const ask = (message) => new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => reject(new Error(event.message));
    worker.postMessage(message);
  });
  const read = async (name) => new Uint8Array(await (await fetch("module/" + name)).arrayBuffer());
  const begin = async (names) => ask(await Promise.all(names.map(read)));
</script>`;

/** Cross-origin isolated, which gives the page a clock of 5 us. */
async function servePage(bundle: string): Promise<{ url: string; close(): void }> {
  const server = createServer((request, response) => {
    const name = path.basename(request.url ?? "");
    const isolation = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };
    const [type, body] =
      name === "worker.js"
        ? ["text/javascript", readFileSync(bundle)]
        : moduleNames().includes(name)
          ? ["application/wasm", readFileSync(path.join(moduleDir, name))]
          : ["text/html", PAGE];
    response.writeHead(200, { ...isolation, "Content-Type": type }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close: () => server.close() };
}

/** A Worker in a headless Chromium. Throws if there is no Chromium. */
export async function startChromium(bundle: string): Promise<Runner> {
  const open = await openBrowser({ headless: true });
  const site = await servePage(bundle);
  const page = await open.browser.newPage();
  await page.goto(site.url);
  await page.evaluate(`begin(${JSON.stringify(moduleNames())})`);
  return {
    request: async (line) => String(await page.evaluate(`ask(${JSON.stringify(line)})`)),
    close: async () => {
      await open.close();
      site.close();
    },
  };
}
