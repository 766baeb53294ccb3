/**
 * Policies: which policies (CSP) came with a document. No script of a page can read them, and a request that they
 * refuse makes the browser report to the site. So they decide before the extension asks for anything in a page's name.
 */
import { allowsFetch, allowsMediaSource, parsePolicies, type Policy } from "../shared/csp";
import { keepLatest } from "../shared/keep-latest";
import type { PlainAnswer, PlainQuestion } from "../shared/runtime";

/** Documents that are remembered. Of an older one nothing is known, and the browser plays its videos itself. */
const DOCUMENTS_MAX = 1000;
const KEY = "policies";

/** By tab and address. Pages that are kept for "back" stay in it. */
const policiesOf = new Map<string, Policy[]>();

/** The browser may stop this background while the page lives. */
const restored = chrome.storage.session.get(KEY).then(({ [KEY]: stored }) => {
  const newer = [...policiesOf];
  policiesOf.clear();
  for (const [key, policies] of [...((stored ?? []) as typeof newer), ...newer]) policiesOf.set(key, policies);
});

let isSaving = false;

async function save(): Promise<void> {
  if (isSaving) return;
  isSaving = true;
  await restored;
  isSaving = false;
  await chrome.storage.session.set({ [KEY]: [...policiesOf] });
}

const keyOf = (tabId: number, url: string): string => `${tabId} ${url.replace(/#.*/s, "")}`;

chrome.webRequest.onResponseStarted.addListener(
  ({ tabId, url, responseHeaders = [] }) => {
    const texts = responseHeaders.filter(({ name }) => /^content-security-policy(?:-report-only)?$/i.test(name));
    const policies = parsePolicies(texts.map(({ value = "" }) => value));
    keepLatest(policiesOf, keyOf(tabId, url), policies, DOCUMENTS_MAX);
    void save();
  },
  { urls: ["http://*/*", "https://*/*"], types: ["main_frame", "sub_frame"] },
  ["responseHeaders"],
);

/** Whether the plain-video script may play `url` in the document that asks, so that no policy refuses any of it. */
export async function mayPlay(
  { documentUrl, url, metaPolicies }: PlainQuestion,
  { tab }: chrome.runtime.MessageSender,
): Promise<PlainAnswer> {
  await restored;
  const known = policiesOf.get(keyOf(tab?.id ?? -1, documentUrl));
  if (known === undefined || !URL.canParse(url)) return "no";
  const [self, asked] = [new URL(documentUrl), new URL(url)];
  const policies = [...known, ...parsePolicies(metaPolicies)];
  if (!allowsMediaSource(policies) || !allowsFetch(policies, self, asked)) return "no";
  return policies.some(({ connect }) => connect !== null) ? "here" : "anywhere";
}
