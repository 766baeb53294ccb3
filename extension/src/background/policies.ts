/**
 * Policies: which policies (CSP) came with a document. No script of a page can read them, and a request that they
 * refuse makes the browser report to the site. So they decide before the extension asks for anything in a page's name.
 */
import { allowsFetch, allowsMediaSource, parsePolicies, type Policy } from "../shared/csp";
import { keepLatest } from "../shared/keep-latest";
import type { PlainAnswer, PlainQuestion } from "../shared/runtime";

/** Documents that are remembered. Of an older one nothing is known, and the browser plays its videos itself. */
const DOCUMENTS_MAX = 1000;
/** Of one address in one frame. Only downloads and pages that are left at once bring an answer without a document. */
const ANSWERS_MAX = 8;
const KEY = "policies";

interface Known {
  /** The document's address before any script could change it. */
  address: string;
  policies: Policy[];
}

/** By tab, frame and address: the policies of each answer whose document has not started yet. */
const answersOf = new Map<string, Policy[][]>();
/** By the document's id. A document keeps it while it is prerendered, shown, and kept for "back". */
const documents = new Map<string, Known>();

/** The browser may stop this background while the page lives. */
const restored = chrome.storage.session.get(KEY).then(({ [KEY]: stored }) => {
  const newer = [...documents];
  documents.clear();
  for (const [id, known] of [...((stored ?? []) as typeof newer), ...newer]) documents.set(id, known);
});

let isSaving = false;

async function save(): Promise<void> {
  if (isSaving) return;
  isSaving = true;
  await restored;
  isSaving = false;
  await chrome.storage.session.set({ [KEY]: [...documents] });
}

const keyOf = (tabId: number, frameId: number, url: string): string => `${tabId} ${frameId} ${url.replace(/#.*/s, "")}`;

chrome.webRequest.onResponseStarted.addListener(
  ({ tabId, frameId, documentId, url, responseHeaders = [] }) => {
    // A document of the frame fetches a page ahead. Its policies come once more when the browser goes there.
    if (documentId !== undefined) return;
    const texts = responseHeaders.filter(({ name }) => /^content-security-policy(?:-report-only)?$/i.test(name));
    const policies = parsePolicies(texts.map(({ value = "" }) => value));
    const key = keyOf(tabId, frameId, url);
    const answers = [...(answersOf.get(key) ?? []), policies].slice(-ANSWERS_MAX);
    keepLatest(answersOf, key, answers, DOCUMENTS_MAX);
  },
  { urls: ["http://*/*", "https://*/*"], types: ["main_frame", "sub_frame"] },
  ["responseHeaders"],
);

/**
 * A document starts, before any script of it runs. If several answers could have brought it, the policies of all count,
 * so the strictest holds.
 */
export function noteStart(address: string, { tab, frameId, documentId }: chrome.runtime.MessageSender): void {
  const key = keyOf(tab?.id ?? -1, frameId ?? -1, address);
  const answers = answersOf.get(key);
  if (answers === undefined || documentId === undefined) return;
  answersOf.delete(key);
  keepLatest(documents, documentId, { address, policies: answers.flat() }, DOCUMENTS_MAX);
  void save();
}

/** Whether the plain-video script may play `url` in the document that asks, so that no policy refuses any of it. */
export async function mayPlay(
  { url, metaPolicies }: PlainQuestion,
  { documentId = "" }: chrome.runtime.MessageSender,
): Promise<PlainAnswer> {
  await restored;
  const known = documents.get(documentId);
  if (known === undefined || !URL.canParse(url)) return "no";
  const [self, asked] = [new URL(known.address), new URL(url)];
  const policies = [...known.policies, ...parsePolicies(metaPolicies)];
  if (!allowsMediaSource(policies) || !allowsFetch(policies, self, asked)) return "no";
  return policies.some(({ connect }) => connect !== null) ? "here" : "anywhere";
}

/**
 * Whether each known document of `pageOrigin` may fetch `url`, so it does not matter which of them the request is for.
 * False if none is known.
 */
export async function mayFetch(pageOrigin: string, url: string): Promise<boolean> {
  await restored;
  const own = [...documents.values()].filter(({ address }) => new URL(address).origin === pageOrigin);
  return own.length > 0 && own.every(({ address, policies }) => allowsFetch(policies, new URL(address), new URL(url)));
}
