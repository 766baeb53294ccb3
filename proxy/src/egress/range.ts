/** Checks that a 206 of an origin is what the proxy asked for. Other bytes would end up in the wrong place. */
import { formatRange, parseContentRange, type RangeRequest } from "@tributary/contract";
import { egressError } from "./error";

/**
 * The length that a 206's Content-Range gives. Throws an `EgressError` when it is missing or unreadable, is not
 * (a beginning of) what was asked for, or contradicts Content-Length.
 */
export function checkContentRange(
  header: string | undefined,
  range: RangeRequest | undefined,
  announcedBytes: number | undefined,
): number {
  const told = parseContentRange(header);
  const got = header?.slice(0, 100) ?? "no Content-Range";
  const names = `asked for ${range ? formatRange(range) : "the whole"}, got ${got}`;
  if (!told || !range)
    throw egressError("rangeMismatch", `The origin sent a part of the resource that was not asked for: ${names}.`);
  const { start, end } = told;
  const bytes = end - start + 1;
  const startsWrong = "start" in range && start !== range.start;
  const endsWrong = "start" in range && range.end !== undefined && end > range.end;
  if (startsWrong || endsWrong) throw egressError("rangeMismatch", `The origin sent another range: ${names}.`);
  if (announcedBytes !== undefined && announcedBytes !== bytes) {
    const message = `Content-Length and Content-Range differ: got ${announcedBytes}, the range has ${bytes}.`;
    throw egressError("rangeMismatch", message, { got: announcedBytes, limit: bytes });
  }
  return bytes;
}
