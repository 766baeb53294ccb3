/** Options that several commands have, and the values that options take. */
import { readFile } from "node:fs/promises";
import { InvalidArgumentError, Option, type Command } from "commander";
import { CONNECTIONS_MAX } from "@tributary/contract";
import { MODES, TRANSPORT_OPTIONS, type GetOptions, type Mode, type TransportOption } from "../api";
import { trustOrigins } from "../origin-connect";
import { CONNECTIONS_DEFAULT } from "../settings";
import { Exit, STATUS } from "./exit";
import { fileFault } from "./faults";

export const ORIGO_URL_DEFAULT = "http://127.0.0.1:7600";

export function origoOption(): Option {
  return new Option("--origo <url>", "where Origo is").env("TRIBUTARY_ORIGO").default(ORIGO_URL_DEFAULT);
}

/** The values of `addRouteOptions`. */
export interface RouteWords {
  origo: string;
  mode?: Mode;
  connections?: number;
  transport: TransportOption;
  record: boolean;
}

/** The values of `addProxyOptions`. */
export interface ProxyWords extends RouteWords {
  fallback: boolean;
  sharing?: boolean;
  generationSize?: number;
  symbolBytes?: number;
  window?: number;
  comment?: string;
}

/** Adds the options that say which proxies are used, and how they are reached. */
export function addRouteOptions(command: Command): Command {
  return command
    .addOption(origoOption())
    .addOption(new Option("--mode <mode>", "how proxies are used (default: coded)").choices(MODES))
    .option(
      "--connections <n>",
      `proxies to use at once, 1..${CONNECTIONS_MAX} (default: ${CONNECTIONS_DEFAULT})`,
      wholeNumber,
    )
    .addOption(
      new Option("--transport <name>", "what carries the packets; udp only if a proxy offers it")
        .choices(TRANSPORT_OPTIONS)
        .default("auto"),
    )
    .option("--no-record", "send Origo no record of the downloads");
}

export interface TrustWords {
  cacert?: string;
  insecure?: true;
}

/** Adds the options that say which certificates of origins are taken. Proxies take those that every browser takes. */
export function addTrustOptions(command: Command, consequence = ""): Command {
  return command
    .option("--cacert <file>", `trust these authorities (PEM) for direct requests${consequence}`)
    .option("-k, --insecure", `take any certificate in direct requests${consequence}`);
}

/** Throws an Exit if the file is of no use. */
export async function trustAsTold({ cacert, insecure }: TrustWords): Promise<void> {
  const ca =
    cacert === undefined
      ? undefined
      : await readFile(cacert, "utf8").catch((error: unknown) => {
          throw fileFault("read", cacert, error);
        });
  if (ca !== undefined && !ca.includes("-----BEGIN CERTIFICATE-----"))
    throw new Exit(
      STATUS.failed,
      `${cacert} has no certificate in PEM: the line -----BEGIN CERTIFICATE----- is missing.`,
    );
  trustOrigins({ ...(ca === undefined ? {} : { ca }), ...(insecure ? { insecure } : {}) });
}

/** Adds the options that say how proxies are used for a download. */
export function addProxyOptions(command: Command): Command {
  return addRouteOptions(command.optionsGroup("Proxies:"))
    .option("--no-fallback", "fail if the proxies fail, and do not fetch from the origin")
    .option("--sharing", "in mode coded, let the proxies read a chunk from its origin together, once")
    .option("--no-sharing", "let each proxy read the whole chunk")
    .option("--generation-size <n>", "symbols that are coded together", wholeNumber)
    .option("--symbol-bytes <n>", "bytes of a symbol", wholeNumber)
    .option("--window <n>", "most packets of a proxy in transit; in mode coded, before its first grant", wholeNumber)
    .option("--comment <text>", "a text for the download's record");
}

export function proxyOptionsOf(words: ProxyWords): GetOptions {
  const { mode, connections, fallback, sharing, generationSize, symbolBytes, window: windowPackets, comment } = words;
  const options = { mode, connections, sharing, generationSize, symbolBytes, windowPackets, comment };
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return { ...(Object.fromEntries(given) as GetOptions), allowFallback: fallback };
}

export function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError("Allowed: a whole number.");
  return Number(text);
}

export function seconds(text: string): number {
  if (!/^\d+(\.\d+)?$/.test(text) || Number(text) === 0) throw new InvalidArgumentError("Allowed: seconds above 0.");
  return Number(text);
}

const SCALES: Record<string, number> = { "": 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 };

/** `500k` is 512,000 bytes, as in curl, wget and aria2. */
export function byteCount(text: string): number {
  const match = /^(\d+(?:\.\d+)?)([kmg]?)$/i.exec(text);
  const bytes = match ? Math.floor(Number(match[1]) * SCALES[match[2]!.toLowerCase()]!) : 0;
  if (bytes < 1) throw new InvalidArgumentError("Allowed: a number of bytes above 0, with k, M or G, e.g. 500k.");
  return bytes;
}

/** Collects an option that may come several times. */
export function each(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}
