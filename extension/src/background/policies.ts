/**
 * Policies: which policies (CSP) came with a document. No script of a page can read them, and a request that they
 * refuse makes the browser report to the site. So the content script asks for them when its document starts.
 */
import { compilePolicies, NONE, parsePolicies, type CompiledPolicies, type Policy } from "../shared/csp";
import { keepLatest } from "../shared/keep-latest";
import type { ToContent } from "../shared/runtime";

/** Frames and addresses whose answers are remembered. Of an older one nothing is known. */
const ADDRESSES_MAX = 1000;
/** Of one address in one frame. Only downloads and pages that are left at once bring an answer without a document. */
const ANSWERS_MAX = 8;
/** Letters of policies in `<meta>` elements that are read at once. A page can cause it, and more allow nothing. */
const METAS_LENGTH_MAX = 2 ** 16;
/** Questions to all tabs at once. A page can cause them, and further ones are answered with no. */
const QUESTIONS_MAX = 16;
let questions = 0;

/** A background that starts with the document may hear of the document before it hears of the answer. */
const LATE_MS_MAX = 2000;

/** By tab, frame and address: the policies of each answer whose document has not started yet. */
const answersOf = new Map<string, Policy[][]>();
/** An event of the same key tells of each answer. */
const heard = new EventTarget();

const keyOf = (tabId: number, frameId: number, url: string): string => `${tabId} ${frameId} ${url.replace(/#.*/s, "")}`;

chrome.webRequest.onResponseStarted.addListener(
  ({ tabId, frameId, documentId, url, responseHeaders = [] }) => {
    // A document of the frame fetches a page ahead. Its policies come once more when the browser goes there.
    if (documentId !== undefined) return;
    const texts = responseHeaders.filter(({ name }) => /^content-security-policy(?:-report-only)?$/i.test(name));
    const policies = parsePolicies(texts.map(({ value = "" }) => value));
    if (responseHeaders.some(reportsEmbedding)) policies.push(NONE);
    const key = keyOf(tabId, frameId, url);
    const answers = [...(answersOf.get(key) ?? []), policies].slice(-ANSWERS_MAX);
    keepLatest(answersOf, key, answers, ADDRESSES_MAX);
    heard.dispatchEvent(new Event(key));
  },
  { urls: ["http://*/*", "https://*/*"], types: ["main_frame", "sub_frame"] },
  ["responseHeaders"],
);

/**
 * An embedder policy that only reports. Of the extension's frame the browser would report the address to the site, so
 * such a document gets none.
 */
function reportsEmbedding({ name, value = "" }: chrome.webRequest.HttpHeader): boolean {
  return /^cross-origin-embedder-policy-report-only$/i.test(name) && /^\s*(?:require-corp|credentialless)/.test(value);
}

/**
 * The policies of the document that starts now at `address`; null if they are not known. If several answers could have
 * brought it, the policies of all count, so the strictest holds.
 */
export function takePolicies(address: string, sender: chrome.runtime.MessageSender): CompiledPolicies | null {
  const key = senderKey(address, sender);
  const policies = compiledOf(key, address);
  answersOf.delete(key);
  return policies;
}

/** The same of a document whose policies were not known when it started. */
export async function awaitPolicies(
  address: string,
  sender: chrome.runtime.MessageSender,
): Promise<CompiledPolicies | null> {
  const key = senderKey(address, sender);
  if (!answersOf.has(key)) await lateAnswer(key);
  // The answer stays for the next document, because this one may have been left meanwhile.
  return compiledOf(key, address);
}

const senderKey = (address: string, { tab, frameId }: chrome.runtime.MessageSender): string =>
  keyOf(tab?.id ?? -1, frameId ?? -1, address);

function compiledOf(key: string, address: string): CompiledPolicies | null {
  const answers = answersOf.get(key);
  return answers === undefined ? null : compilePolicies(answers.flat(), new URL(address));
}

/** Ends when an answer for `key` is heard of, or after LATE_MS_MAX. */
function lateAnswer(key: string): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      heard.removeEventListener(key, end);
      resolve();
    };
    const timer = setTimeout(end, LATE_MS_MAX);
    heard.addEventListener(key, end);
  });
}

/** The policies in `<meta>` elements of the document that started at `address`. */
export function compileMetas(texts: readonly string[], address: string): CompiledPolicies {
  const isShort = texts.join().length <= METAS_LENGTH_MAX;
  return compilePolicies(parsePolicies(isShort ? texts : ["default-src 'none'"]), new URL(address));
}

/**
 * Whether each open document of `pageOrigin` may fetch `url`, so it does not matter which of them the request is for.
 * The content scripts know. In each tab only one that says no answers.
 */
export async function mayFetch(pageOrigin: string, url: string): Promise<boolean> {
  if (questions >= QUESTIONS_MAX) return false;
  questions += 1;
  const question: ToContent = { to: "content", pageOrigin, url };
  const ask = ({ id = -1 }: chrome.tabs.Tab): Promise<unknown> =>
    chrome.tabs.sendMessage(id, question).catch(() => undefined);
  try {
    return !(await Promise.all((await chrome.tabs.query({})).map(ask))).includes(false);
  } finally {
    questions -= 1;
  }
}
