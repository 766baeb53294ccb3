/**
 * Checks a plan against the request, the trusted facts, and the plans of the other proxies. Pure functions that return
 * rejections as data. Rules: protocol.md §5.2 and §9.1.
 */
import { headDifference, type Rejection } from "@tributary/contract";
import { geometryOf, isRejection } from "../geometry";
import type { PlanHead, RequestFrame } from "../types";
import type { Trusted } from "./verification";

/** Why two plans cannot be of the same resource; undefined when they can. */
export function differenceOf(ours: Trusted["head"], theirs: PlanHead): Rejection | undefined {
  const difference = headDifference(ours, theirs);
  return difference && mismatch(difference.what, String(difference.got), String(difference.expected));
}

function mismatch(what: string, got: string, expected: string): Rejection {
  return {
    kind: "planMismatch",
    message: `The proxy's plan differs in its ${what}: got ${got}, expected ${expected}.`,
  };
}

/** An answer to a range must not be longer than the range. */
export function rangeExceeded({ range }: RequestFrame, { status, totalBytes }: PlanHead): Rejection | undefined {
  if (status !== 206 || !range) return undefined;
  const limit = range.end - range.start + 1;
  if (totalBytes <= limit) return undefined;
  const message = `The answer is longer than the range: got ${totalBytes}, limit ${limit}.`;
  return { kind: "rangeExceeded", message, got: totalBytes, limit };
}

/** Throws unless there is a digest for each generation. */
export function checkDigests({ head, digests }: Trusted, { symbolBytes, generationSize }: RequestFrame): void {
  const geometry = geometryOf(head.totalBytes, symbolBytes, generationSize);
  if (isRejection(geometry)) throw new RangeError(geometry.message);
  if (geometry.generationCount === digests.length) return;
  throw new RangeError(
    `There must be a digest for each generation: got ${digests.length}, limit ${geometry.generationCount}.`,
  );
}
