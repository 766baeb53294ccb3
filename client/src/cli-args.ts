/** Parses the command line into a `Command`, which cli.ts executes. No I/O. */
import { parseArgs } from "node:util";
import { CONNECTIONS_MAX, type ByteRange } from "@tributary/contract";
import type { GetOptions, Mode } from "./api";
import { MODES, TRANSPORT_OPTIONS, type TransportOption } from "./api";
import { CONNECTIONS_DEFAULT } from "./settings";

export const ORIGO_URL_DEFAULT = "http://127.0.0.1:7600";

export interface GetCommand {
  command: "get";
  url: string;
  origoUrl: string;
  options: GetOptions;
  transport: TransportOption;
  output: string | undefined;
  json: boolean;
}

export type Command =
  | GetCommand
  | { command: "proxies"; origoUrl: string; json: boolean }
  | { command: "help" }
  | { command: "usageError"; message: string };

export const HELP = `Usage: npm run -s tributary -- get URL [options]
       npm run -s tributary -- proxies [--origo URL] [--json]

get fetches URL through several proxies at once and writes its bytes to standard output or a file.

  --range A-B           bytes A to B, both included
  --mode MODE           ${MODES.join(", ")} (default coded)
  --connections N       proxies to use at once, 1..${CONNECTIONS_MAX} (default ${CONNECTIONS_DEFAULT})
  --transport NAME      ${TRANSPORT_OPTIONS.join(", ")} (default auto; udp only if a proxy offers it)
  --origo URL           where Origo is (default ${ORIGO_URL_DEFAULT})
  --output FILE         write the bytes to FILE
  --json                print one JSON object about the download, and no bytes
  --no-fallback         fail if the proxies fail, and do not fetch from the origin
  --generation-size N   symbols that are coded together
  --symbol-bytes N      bytes of a symbol
  --window N            most packets of a proxy in transit; in mode coded, before its first grant
  --comment TEXT        a text for the download's record
  -h, --help            show this text

proxies lists the proxies that Origo knows.

Exit status: 0 on success, 1 on failure (also for an HTTP status of 400 or more), 2 for a wrong command line.
`;

const OPTIONS = {
  range: { type: "string" },
  mode: { type: "string" },
  transport: { type: "string" },
  connections: { type: "string" },
  origo: { type: "string" },
  output: { type: "string" },
  json: { type: "boolean" },
  "no-fallback": { type: "boolean" },
  "generation-size": { type: "string" },
  "symbol-bytes": { type: "string" },
  window: { type: "string" },
  comment: { type: "string" },
  help: { type: "boolean", short: "h" },
} as const;

class UsageError extends Error {}

export function parseCommand(args: string[]): Command {
  try {
    return parse(args);
  } catch (error) {
    return { command: "usageError", message: (error as Error).message };
  }
}

function parse(args: string[]): Command {
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  const [command, ...rest] = positionals;
  if (values.help || command === "help") return { command: "help" };
  const origoUrl = values.origo ?? ORIGO_URL_DEFAULT;
  const json = values.json ?? false;
  if (command === "proxies") {
    if (rest.length > 0) throw new UsageError(`proxies takes no argument: got ${JSON.stringify(rest[0])}.`);
    return { command: "proxies", origoUrl, json };
  }
  if (command !== "get") {
    const got = command === undefined ? "nothing" : JSON.stringify(command);
    throw new UsageError(`The command is not known: got ${got}, allowed: get, proxies, help.`);
  }
  if (rest.length !== 1) throw new UsageError(`get takes one URL: got ${rest.length}.`);
  const options: GetOptions = { allowFallback: !values["no-fallback"] };
  if (values.mode !== undefined) options.mode = values.mode as Mode;
  if (values.range !== undefined) options.range = parseRange(values.range);
  if (values.comment !== undefined) options.comment = values.comment;
  setNumber(options, "connections", "--connections", values.connections);
  setNumber(options, "generationSize", "--generation-size", values["generation-size"]);
  setNumber(options, "symbolBytes", "--symbol-bytes", values["symbol-bytes"]);
  setNumber(options, "windowPackets", "--window", values.window);
  return {
    command: "get",
    url: rest[0]!,
    origoUrl,
    options,
    transport: (values.transport ?? "auto") as TransportOption,
    output: values.output,
    json,
  };
}

function parseRange(text: string): ByteRange {
  const match = /^(\d+)-(\d+)$/.exec(text);
  if (!match)
    throw new UsageError(`--range is not valid: got ${JSON.stringify(text)}, allowed: A-B with whole numbers A <= B.`);
  return { start: Number(match[1]), end: Number(match[2]) };
}

type NumberOption = "connections" | "generationSize" | "symbolBytes" | "windowPackets";

function setNumber(options: GetOptions, name: NumberOption, flag: string, text: string | undefined): void {
  if (text === undefined) return;
  if (!/^\d+$/.test(text))
    throw new UsageError(`${flag} is not valid: got ${JSON.stringify(text)}, allowed: a whole number.`);
  options[name] = Number(text);
}
