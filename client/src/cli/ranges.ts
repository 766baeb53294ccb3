/**
 * `--range`: what it names, and which bytes that is. Several ranges, and the last bytes of a file, need the file's
 * length, so the origin is asked for one byte before.
 */
import { InvalidArgumentError } from "commander";
import {
  isSameVersion,
  parseContentRange,
  strongValidator,
  type ByteRange,
  type ResponseHead,
} from "@tributary/contract";
import type { GetOptions } from "../api";
import { Exit, STATUS } from "./exit";
import { problemOf } from "./faults";
import type { Source } from "./pace";
import { stopped } from "./signals";

export type RangeWish = ByteRange | { lastBytes: number };

/** Servers end a range at the end of the file (RFC 9110 §14.1.2). */
const OFFSET_MAX = 2 ** 48 - 1;
const RANGES_MAX = 100;

export function parseRanges(text: string): RangeWish[] {
  const parts = text.split(",");
  if (parts.length > RANGES_MAX) throw new InvalidArgumentError(`Allowed: at most ${RANGES_MAX} ranges.`);
  return parts.map((part) => parseRange(part.trim()));
}

function parseRange(text: string): RangeWish {
  const [, first = "", last = ""] = /^(\d*)-(\d*)$/.exec(text) ?? [];
  const [start, end] = [Number(first), last === "" ? OFFSET_MAX : Number(last)];
  if (first === "" && last !== "" && end > 0 && end <= OFFSET_MAX) return { lastBytes: end };
  if (first === "" || start > end || end > OFFSET_MAX)
    throw new InvalidArgumentError(
      "Allowed: A-B with whole numbers A <= B, A- to the end, -N for the last N bytes, or several with commas.",
    );
  return { start, end };
}

/** The one range that a request can ask for as it is. */
export function plainRange(wishes: readonly RangeWish[] | undefined): ByteRange | undefined {
  const [first, ...others] = wishes ?? [];
  return first && "start" in first && others.length === 0 ? first : undefined;
}

/** What to fetch, one range after the other. No range is the whole. */
export interface KnownRanges {
  ranges: readonly ByteRange[];
  /** Why an answer does not belong to what is known of the file. */
  faultOf(head: ResponseHead): string | undefined;
}

/** Throws an Exit if the origin does not tell what is needed. */
export async function findRanges(
  client: Source,
  url: string,
  options: GetOptions,
  wishes: readonly RangeWish[] | undefined,
): Promise<KnownRanges> {
  const plain = plainRange(wishes);
  if (!wishes || plain) return { ranges: plain ? [plain] : [], faultOf: () => undefined };
  const head = await askForOneByte(client, url, options);
  const resourceBytes = lengthOf(head);
  if (resourceBytes === null)
    throw new Exit(STATUS.failed, "The origin does not tell how long the file is: ask for one range A-B or A-.");
  const isSeveral = wishes.length > 1;
  if (isSeveral && strongValidator(head) === undefined)
    throw new Exit(
      STATUS.failed,
      "Nothing in the answer tells versions of the file apart, so its ranges could be of several: ask for one range.",
    );
  const ranges = wishes.map((wish) => rangeOf(wish, resourceBytes)).filter(({ start }) => start < resourceBytes);
  if (ranges.length === 0)
    throw new Exit(STATUS.failed, `The file has ${resourceBytes} bytes, and no range begins within them.`);
  return {
    ranges,
    faultOf: (now) => {
      const isSame = lengthOf(now) === resourceBytes && (!isSeveral || isSameVersion(head, now));
      return isSame ? undefined : "The file changed while its ranges were fetched: repeat the command.";
    },
  };
}

function rangeOf(wish: RangeWish, resourceBytes: number): ByteRange {
  const last = resourceBytes - 1;
  if ("lastBytes" in wish) return { start: Math.max(0, resourceBytes - wish.lastBytes), end: last };
  return { start: wish.start, end: Math.min(wish.end, last) };
}

function lengthOf({ headers }: ResponseHead): number | null {
  return parseContentRange(headers["content-range"])?.resourceBytes ?? null;
}

async function askForOneByte(client: Source, url: string, options: GetOptions): Promise<ResponseHead> {
  const download = client.get(url, { ...options, range: { start: 0, end: 0 } });
  const abort = (): void => download.abort("interrupted");
  stopped.addEventListener("abort", abort);
  try {
    await download.body.pipeTo(new WritableStream()).catch(() => undefined);
    const problem = problemOf(await download.record);
    if (problem) throw problem;
    return await download.head;
  } finally {
    stopped.removeEventListener("abort", abort);
  }
}
