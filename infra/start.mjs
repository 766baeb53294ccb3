/**
 * `npm start`: sets up the clone, then starts a fleet on loopback (lab/stack/src/start.ts). It checks the options
 * first, so that a typing error costs no build.
 */
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { endWithNpm } from "./lifetime.mjs";
import { checkNodeVersion, root, runMain, setUp } from "./setup.mjs";

const HELP = `npm start -- [options]: runs Origo, proxies and a sample site with a video on this machine until Ctrl-C

  --proxies N             number of proxies, 1 to 18 (default 4)
  --rate BYTES_PER_SEC    the most that each proxy sends (default 896000, as in the paper); 0 = unlimited
  --allow HOST[:PORT]     let the proxies also fetch from this host; repeatable; '*' = any public host
  --browser               open Chromium with the extension (needs a display)
  --once                  play 15 s of the sample headless in mode coded, print and check a table, and end
  --help                  this text`;

const HOST_PATTERN =
  /^(\*|\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*)(:\d{1,5})?$/i;

/** Parses the options. Returns `{ options }`, or `{ fault }` with a sentence. */
export function parseOptions(words) {
  const options = { proxies: 4, rate: 896_000, allow: [], browser: false, once: false, help: false };
  const values = {
    "--proxies": (text) =>
      (options.proxies = wholeNumber(text, 1, 18)) === undefined
        ? `--proxies must be a whole number from 1 to 18, got "${text}"`
        : undefined,
    "--rate": (text) =>
      (options.rate = wholeNumber(text, 0, 1e10)) === undefined
        ? `--rate must be a whole number of bytes a second from 0 (unlimited) to 10000000000, got "${text}"`
        : undefined,
    "--allow": (text) =>
      validHost(text)
        ? void options.allow.push(text)
        : `--allow must be HOST or HOST:PORT with a port from 1 to 65535, got "${text}"`,
  };
  const flags = { "--browser": "browser", "--once": "once", "--help": "help" };
  for (let index = 0; index < words.length; index++) {
    const [name, inline] = splitOnce(words[index]);
    if (name in flags && inline === undefined) options[flags[name]] = true;
    else if (name in values) {
      const text = inline ?? words[++index];
      const fault = text === undefined ? `${name} needs a value` : values[name](text);
      if (fault) return { fault };
    } else return { fault: `unknown option ${words[index]}: npm start -- --help lists them all` };
  }
  if (options.browser && options.once)
    return { fault: "--browser and --once exclude each other: --once runs without a window" };
  return { options };
}

function splitOnce(word) {
  const at = word.indexOf("=");
  return at > 0 && word.startsWith("--") ? [word.slice(0, at), word.slice(at + 1)] : [word, undefined];
}

function wholeNumber(text, min, max) {
  const value = /^\d+$/.test(text) ? Number(text) : NaN;
  return value >= min && value <= max ? value : undefined;
}

function validHost(text) {
  if (!HOST_PATTERN.test(text)) return false;
  const port = /:(\d+)$/.exec(text.replace(/^\[[^\]]*\]/, ""))?.[1];
  return port === undefined || (Number(port) >= 1 && Number(port) <= 65_535);
}

async function main() {
  checkNodeVersion();
  const { options, fault } = parseOptions(process.argv.slice(2));
  if (fault) {
    console.error(fault);
    return 2;
  }
  if (options.help) {
    console.log(HELP);
    return 0;
  }
  endWithNpm();
  await setUp({ browser: options.browser || options.once });
  const { start } = await import(pathToFileURL(path.join(root, "lab/stack/dist/start.js")).href);
  return start(options);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await runMain(main);
  process.exit();
}
