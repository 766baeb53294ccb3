/**
 * `npm start`: a fleet on loopback for a person to try, until Ctrl-C. --browser opens a Chromium window on it, --once
 * runs headless and judges the result. infra/start.mjs has parsed the options and done the set-up.
 */
import { builtExtensionDir, openBrowser, writeExtensionDefaults } from "./browser";
import { startFleet } from "./fleet";
import type { Fleet } from "./fleet";
import { runOnce } from "./once";
import { publisherCode } from "./publisher-code";
import { describeEnd } from "./services";
import type { Service } from "./services";

export interface StartOptions {
  proxies: number;
  /** Rate of each proxy. 0: unlimited. */
  rate: number;
  allow: string[];
  browser: boolean;
  once: boolean;
}

const PLAYERS = { "hls.js": "/hls.html", "dash.js": "/dash.html", shaka: "/shaka.html", plain: "/plain.html" };
/** Exit status of a run that a signal cut short (128 + SIGINT). */
const INTERRUPTED = 130;
/** A second signal within this time is the first one again. */
const SAME_SIGNAL_MS = 1_000;
const print = (line: string): void => console.log(line);

/** Resolves to the exit status. */
export async function start(options: StartOptions): Promise<number> {
  if (options.browser && process.platform === "linux" && !process.env["DISPLAY"] && !process.env["WAYLAND_DISPLAY"]) {
    console.error(
      "--browser opens a window, and there is no display here (neither DISPLAY nor WAYLAND_DISPLAY is " +
        "set): run it on a desktop, or use --once, which needs none",
    );
    return 2;
  }
  const interrupt = untilSignal();
  const onDeath = (service: Service): void => (interrupt.seen ? undefined : reportDeath(service));
  let fleet: Fleet;
  try {
    fleet = await startFleet({
      proxyCount: options.proxies,
      rateBytesPerSec: options.rate,
      allow: options.allow,
      onDeath,
    });
  } catch (error) {
    if (interrupt.seen) return INTERRUPTED;
    throw error;
  }
  try {
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: Math.min(4, options.proxies) };
    printAddresses(fleet);
    if (options.once) {
      const passed = await runOnce({ fleet, connections: defaults.connections, print, interrupted: interrupt.first });
      return interrupt.seen ? INTERRUPTED : passed ? 0 : 1;
    }
    await writeExtensionDefaults(builtExtensionDir("chromium"), defaults);
    print(
      `\nextension: open chrome://extensions, turn on "Developer mode", "Load unpacked", choose ` +
        `${builtExtensionDir("chromium")}`,
    );
    print(
      `extension: this copy sends a record of each download to ${fleet.origo.url}, for its dashboard; a ` +
        "store's package sends none unless asked",
    );
    const publisher = `--origo ${fleet.origo.url} --code ${await publisherCode(fleet.origo.url)}`;
    print(`publish: npm run -s tributary -- publish PATH ${publisher}`);
    const window = options.browser ? await openBrowser({ headless: false, defaults }) : undefined;
    if (window) await (await window.browser.pages())[0]?.goto(`${fleet.sample.url}/hls.html`);
    print("running; Ctrl-C stops everything");
    await interrupt.first;
    await window?.close();
    return 0;
  } catch (error) {
    if (interrupt.seen) return INTERRUPTED;
    throw error;
  } finally {
    await fleet.stop();
    print("stopped");
  }
}

function printAddresses(fleet: Fleet): void {
  print(`origo: ${fleet.origo.url}`);
  for (const proxy of fleet.proxies) print(`proxy ${proxy.name}: ${proxy.url}`);
  for (const [name, page] of Object.entries(PLAYERS)) print(`player ${name}: ${fleet.sample.url}${page}`);
}

function reportDeath(service: Service): void {
  void service.ended.then((end) =>
    console.error(
      `${service.name} (process ${service.pid}) ended by itself: ${describeEnd(end)}; the others go on. ` +
        `Its last lines:\n${service.tail()}`,
    ),
  );
}

interface Interrupt {
  readonly first: Promise<void>;
  readonly seen: boolean;
}

/**
 * Resolves at the first Ctrl-C, SIGTERM or SIGHUP. A second Ctrl-C or SIGTERM ends the process and its children at
 * once. Signals shortly after the first one belong to it: the terminal sends one, and npm sends another.
 */
function untilSignal(): Interrupt {
  let firstMs: number | undefined;
  const first = new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => {
        const nowMs = performance.now();
        firstMs ??= nowMs;
        if (nowMs - firstMs > SAME_SIGNAL_MS && signal !== "SIGHUP") process.exit(INTERRUPTED);
        resolve();
      });
    }
  });
  return {
    first,
    get seen() {
      return firstMs !== undefined;
    },
  };
}
