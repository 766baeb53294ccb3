/**
 * Main: a proxy as a process, with the options `--coder auto|cpu|gpu|both` and `--library DIR`. It prints one JSON line
 * to stdout when it is ready. Its log and faults go to stderr.
 */
import { loadCodec } from "@tributary/native-codec";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { configWarnings, parseConfig, withOptions } from "./config";
import { jsonLog } from "./log";
import { Proxy } from "./proxy";

const DRAIN_MS_MAX = 5000;

async function main(): Promise<void> {
  const env = withOptions(process.env, process.argv.slice(2));
  if (typeof env === "string") {
    process.stderr.write(`${env}\n`);
    process.exit(2);
  }
  const parsed = parseConfig(env);
  if ("faults" in parsed) {
    for (const fault of parsed.faults) process.stderr.write(`${fault}\n`);
    process.exit(2);
  }
  const { config } = parsed;
  const log = jsonLog(config.PROXY_NAME, (line) => process.stderr.write(line));
  for (const message of configWarnings(env)) log("environment", { message });
  const proxy = new Proxy(
    config,
    loadCodec(loadWasmCodec, (reason) => log("codecFallback", { reason })),
    log,
  );
  stopOnSignals(proxy, log);
  try {
    await proxy.start();
  } catch (error) {
    process.stderr.write(`The proxy could not start: ${(error as Error).message}\n`);
    process.exit(1);
  }
  const { url, udpPort, webTransportAddress: webTransport, udpAddress: udp } = proxy;
  process.stdout.write(
    `${JSON.stringify({ ready: true, name: config.PROXY_NAME, url, udpPort, webTransport, udp })}\n`,
  );
}

/** The first signal drains the proxy, and a second one ends it at once. process.exit ends the threads of WebRTC. */
function stopOnSignals(proxy: Proxy, log: ReturnType<typeof jsonLog>): void {
  let stopping = false;
  const stop = (signal: NodeJS.Signals): void => {
    if (stopping) process.exit(0);
    stopping = true;
    log("stopping", { signal });
    void proxy.close(DRAIN_MS_MAX).finally(() => process.exit(0));
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
}

void main();
