/**
 * Policies: what the policies (CSP) of this document allow. A request that they refuse makes the browser report to the
 * site. So they decide before the extension asks for anything in the document's name. The background reads them, and
 * this script keeps what they come to.
 */
import { NOTHING, type CompiledPolicies } from "../shared/csp";
import type { PlainAnswer, ToContent } from "../shared/runtime";
import { ask } from "./ask";

/** A page with more policies in `<meta>` elements gets nothing carried. */
const METAS_MAX = 64;

/** As no script has changed it yet. */
const address = location.href;
/** What the background answered; null: it does not know those that came with the document. */
const known: (CompiledPolicies | null)[] = [];
/** How many answers are wanted. While one is missing, nothing is allowed. */
let wanted = 0;
let whenTold: Promise<unknown> | undefined;
/** The content of `<meta>` policies. A policy stays when the page removes its element. */
const noted = new Set<string>();

async function learn(question: Parameters<typeof ask>[0]): Promise<void> {
  wanted++;
  const answer = await ask(question, () => undefined);
  if (answer !== undefined) known.push(answer as CompiledPolicies | null);
}

function noteMetas(): void {
  const texts: string[] = [];
  for (const { content } of document.querySelectorAll<HTMLMetaElement>(
    'meta[http-equiv="content-security-policy" i]',
  )) {
    if (noted.has(content)) continue;
    if (noted.size === METAS_MAX) return void wanted++;
    noted.add(content);
    texts.push(content);
  }
  if (texts.length > 0) whenTold = Promise.all([whenTold, learn({ type: "metas", address, texts })]);
}

// Elements are noted while the document loads, and at each question.
const metas = new MutationObserver(noteMetas);
metas.observe(document, { childList: true, subtree: true });
document.addEventListener("DOMContentLoaded", () => metas.disconnect());

const whenStarted = learn({ type: "start", address });
whenTold = learnLate();

/** While they are unknown, the browser alone judges requests, and no plain video is taken over. */
async function learnLate(): Promise<void> {
  await whenStarted;
  const at = known.indexOf(null);
  if (at < 0) return;
  const late = await ask({ type: "late", address }, () => undefined);
  if (late) known[at] = late as CompiledPolicies;
}

const isKnown = (): boolean => known.length === wanted && !known.includes(null);

/** Whether a policy refuses a request for `url`, as far as the policies are known. */
export function refuses(url: string): boolean {
  noteMetas();
  return known.length < wanted || known.some((each) => each?.connect.some((source) => !new RegExp(source).test(url)));
}

/** Whether the policies leave any address that the document may fetch, as far as they are known at its start. */
export async function mayFetchAny(): Promise<boolean> {
  await whenStarted;
  return !known.some((each) => each?.connect.includes(NOTHING));
}

chrome.runtime.onMessage.addListener(({ to, pageOrigin, url }: ToContent, _, respond: (may: boolean) => void) => {
  if (to === "content" && pageOrigin === location.origin && (refuses(url) || !isKnown())) respond(false);
});

/** Whether the plain-video script may play `url` here, so that no policy refuses any of it. */
export async function mayPlay(url: string): Promise<PlainAnswer> {
  noteMetas();
  await whenTold;
  if (refuses(url) || !isKnown() || known.some((each) => each?.mediaSource === false)) return "no";
  return known.some((each) => each?.connect.length) ? "here" : "anywhere";
}
