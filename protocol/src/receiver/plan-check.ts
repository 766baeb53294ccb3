/**
 * Checks a plan against the request, the trusted facts, and the plans of the other proxies. Pure functions that return
 * rejections as data. Rules: protocol.md §5.2 and §9.2.
 */
import { headDifference, isSameVersion, strongValidator, type Rejection, type ResponseHead } from "@tributary/contract";
import type { PlanHead, RequestFrame } from "../types";
import { statementOf, statementOfRejection, type Statement } from "./agreement";
import type { ProxyState } from "./proxy-state";
import { wordsOf, type Words } from "./voters";

/** Why a plan cannot be the answer that is known beforehand; undefined when it can. */
export function differenceOf(ours: ResponseHead, theirs: PlanHead): Rejection | undefined {
  const difference = headDifference(ours, theirs);
  return difference && planMismatch(`${difference.what} ${String(difference.got)}`, String(difference.expected));
}

function planMismatch(got: string, expected: string): Rejection {
  return {
    kind: "planMismatch",
    message: `The proxy's plan differs from what it must be: got ${got}, expected ${expected}.`,
  };
}

/** Why two plans cannot be of one body although they may differ in their validators; undefined when they can. */
export function planDifference(ours: PlanHead, theirs: PlanHead): Rejection | undefined {
  const [expected, got] = [statementOf(ours), statementOf(theirs)];
  return got === expected ? undefined : planMismatch(got, expected);
}

/** What this proxy says about the answer now. A failed proxy has no say, unless it failed over the body's length. */
export function saidBy({ plan, stats }: ProxyState): Statement {
  return stats.state === "failed" ? stats.error && statementOfRejection(stats.error) : plan && statementOf(plan);
}

/** Whether a statement of this proxy can count, now or later. */
export const isHeard = (proxy: ProxyState): boolean => proxy.stats.state !== "failed" || saidBy(proxy) !== undefined;

/** How this proxy contradicts the confirmed plan, by its plan or by its rejection. */
export function saidOtherwise(confirmed: PlanHead, proxy: ProxyState): Rejection | undefined {
  const [expected, got] = [statementOf(confirmed), proxy.plan ? statementOf(proxy.plan) : saidBy(proxy)];
  return got === undefined || got === expected ? undefined : planMismatch(got, expected);
}

/** What the voters say about the confirmed plan. Failed proxies count if they spoke. */
export function wordsOn(confirmed: PlanHead, proxies: readonly ProxyState[]): Words {
  const statement = statementOf(confirmed);
  const words = proxies.map((proxy) => {
    const said = proxy.plan ? statementOf(proxy.plan) : saidBy(proxy);
    proxy.hasAgreed ||= said === statement;
    if (proxy.hasAgreed) return "agrees";
    if (said !== undefined || proxy.stats.error?.kind === "planMismatch") return "opposes";
    return proxy.stats.state === "failed" ? undefined : "silent";
  });
  return wordsOf(
    words,
    proxies.map(({ voter }) => voter),
  );
}

/** The head with the strong validator that all these proxies sent, if they all sent the same one. */
export function withVersion(head: PlanHead, proxies: readonly { plan: PlanHead | undefined }[]): PlanHead {
  const version = strongValidator(head);
  const isShared = version !== undefined && proxies.every(({ plan }) => !plan || isSameVersion(head, plan));
  return isShared ? { ...head, version } : head;
}

export function bodyDiffers(where: string): Rejection {
  return { kind: "bodyDiffers", message: `The proxy's answer differs from the others' in ${where}.` };
}

/** Without digests, two answers of one proxy count as the same only if their validators say so. */
export function otherAnswer(ours: PlanHead, theirs: PlanHead): Rejection | undefined {
  if (isSameVersion(ours, theirs)) return undefined;
  const message =
    "Nothing shows that the proxy's new answer has the same bytes as the one before its session was lost.";
  return { kind: "bodyDiffers", message };
}

/** Parts of an answer may be joined only if each has the same strong validator (RFC 9110 §8.8.1). */
export function sharingFault(head: PlanHead, isAsked: boolean): Rejection | undefined {
  if (!head.reads || (isAsked && strongValidator(head) !== undefined)) return undefined;
  return { kind: "planMismatch", message: "The proxy reads a part of the chunk although parts may not be joined." };
}

/** An answer to a range must not be longer than the range. */
export function rangeExceeded({ range }: RequestFrame, { status, totalBytes }: PlanHead): Rejection | undefined {
  if (status !== 206 || !range) return undefined;
  const limit = range.end - range.start + 1;
  if (totalBytes <= limit) return undefined;
  const message = `The answer is longer than the range: got ${totalBytes}, limit ${limit}.`;
  return { kind: "rangeExceeded", message, got: totalBytes, limit };
}
