/**
 * Checks a proxy's HTTP answer. It must match the request, and it must be able to have the same bytes as the other
 * answers. Pure functions that return rejections as data.
 */
import {
  headerDifference,
  parseContentRange,
  strongValidator,
  VALIDATOR_HEADERS,
  type ContentRange,
  type ResponseHead,
  type Rejection,
} from "@tributary/contract";

/** Why two answers cannot be of the same body; undefined when they can. */
export function differenceOf(ours: ResponseHead, theirs: ResponseHead): Rejection | undefined {
  const [a, b] = [resourceBytesOf(ours), resourceBytesOf(theirs)];
  if (a !== null && b !== null && a !== b) return differs("length", b, a);
  if (strongValidator(ours) !== strongValidator(theirs))
    return differs("validator", strongValidator(theirs), strongValidator(ours));
  const header = headerDifference(ours, theirs, VALIDATOR_HEADERS);
  return header && differs(header.what, header.got, header.expected);
}

const resourceBytesOf = ({ status, headers }: ResponseHead): number | null =>
  (status === 206 ? parseContentRange(headers["content-range"])?.resourceBytes : undefined) ?? null;

/** Why an answer is not the bytes from `start` to before `end`; undefined when it is. `bytes`: its body's length. */
export function rangeFault(
  start: number,
  end: number,
  told: ContentRange,
  bytes: number | null,
): Rejection | undefined {
  if (told.start !== start || told.end + 1 !== end)
    return differs("range", `${told.start}-${told.end}`, `${start}-${end - 1}`);
  return bytes === null || bytes === end - start ? undefined : differs("length", bytes, end - start);
}

export function differs(what: string, got: unknown, expected: unknown): Rejection {
  return {
    kind: "planMismatch",
    message: `The answer's ${what} differs from what it must be: got ${String(got)}, expected ${String(expected)}.`,
  };
}

export function bodyShort(got: number, limit: number): Rejection {
  return { kind: "bodyShort", message: `The answer ended early: got ${got} bytes, expected ${limit}.`, got, limit };
}
