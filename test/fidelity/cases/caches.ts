/** The browser's own memory: what it holds is not fetched again, and what it fetched it tells. */
import { bodies, bodyOf, give, pause, SEGMENT, type FidelityCase, type Tab } from "../kit";

/** An origin with one content before `version` is 2 and another one after. */
const versioned =
  (headers: object): FidelityCase["answer"] =>
  (exchange) =>
    give(exchange, bodyOf(`${exchange.path} ${exchange.memory["version"] ?? 1}`), { ...SEGMENT, ...headers });

const later = async (tab: Tab, ask: () => Promise<unknown>): Promise<unknown> => {
  tab.memory["version"] = 2;
  await pause(300);
  return ask();
};

export const CACHES: FidelityCase[] = [
  {
    name: "caches/full-list-of-requests",
    proof: "led",
    pageHtml: () =>
      "<!doctype html><script>performance.setResourceTimingBufferSize(0)</script><title>page</title><body>",
    answer: versioned({}),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/k`);
      return tab.run("performance.getEntriesByType('resource').length");
    },
  },
  {
    name: "caches/force-cache",
    proof: "led",
    answer: versioned({}),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/k`);
      const url = `${tab.away}/k/a.ts`;
      const first = await tab.fetch(url);
      return bodies([first, (await later(tab, () => tab.fetch(url, { cache: "force-cache" }))) as never]);
    },
  },
  {
    name: "caches/only-if-cached",
    proof: "led",
    answer: versioned({}),
    run: async (tab) => {
      await tab.leadInto(`${tab.home}/k`);
      const ask = (name: string) =>
        tab.fetch(`${tab.home}/k/${name}.ts`, { cache: "only-if-cached", mode: "same-origin" });
      const missing = await ask("missing");
      await tab.fetch(`${tab.home}/k/a.ts`);
      return bodies([missing, (await later(tab, () => ask("a"))) as never]);
    },
  },
  {
    name: "caches/after-a-reload-of-the-page",
    proof: "led",
    answer: versioned({ "cache-control": "max-age=60" }),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/k`);
      const url = `${tab.away}/k/a.ts`;
      const first = await tab.fetch(url);
      tab.memory["version"] = 2;
      await tab.page.reload({ waitUntil: "load" });
      const second = await tab.run(`fetch("${url}").then((answer) => answer.arrayBuffer()).then(async (bytes) => {
        const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
        const hex = [...hash.slice(0, 6)].map((byte) => byte.toString(16).padStart(2, "0"));
        return bytes.byteLength + ":" + hex.join("");
      })`);
      return { first: first.body, second };
    },
  },
  {
    name: "caches/preloaded",
    proof: "led",
    answer: versioned({ "cache-control": "max-age=60" }),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/k`);
      const url = `${tab.away}/k/a.ts`;
      await tab.run(`new Promise((resolve) => {
        const link = document.createElement("link");
        Object.assign(link, { rel: "preload", as: "fetch", crossOrigin: "anonymous", href: "${url}" });
        link.onload = link.onerror = resolve;
        document.head.append(link);
      })`);
      return bodies([(await later(tab, () => tab.fetch(url))) as never]);
    },
  },
  {
    name: "caches/preloaded-in-the-page",
    pageHtml: ({ away }) =>
      `<!doctype html><link rel="preload" as="fetch" crossorigin href="${away}/k/first.ts"><title>page</title><body>`,
    answer: versioned({ "cache-control": "max-age=60" }),
    run: async (tab) => bodies([(await later(tab, () => tab.fetch(`${tab.away}/k/first.ts`))) as never]),
  },
  {
    name: "caches/resource-timing",
    proof: "carried",
    answer: versioned({ "timing-allow-origin": "*" }),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/k`);
      await tab.fetch(`${tab.away}/k/1.ts`);
      await tab.xhr(`${tab.away}/k/2.ts`);
      return tab.run(`performance.getEntriesByType("resource").filter(({ name }) => /\\/k\\/\\d\\./.test(name))
        .map((entry) => [entry.name, entry.initiatorType, entry.responseStatus, entry.decodedBodySize])`);
    },
  },
  {
    name: "caches/two-at-once",
    proof: "carried",
    answer: versioned({ "cache-control": "max-age=60" }),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/k`);
      const url = `${tab.away}/k/1.ts`;
      return bodies(await Promise.all([tab.fetch(url), tab.fetch(url), tab.xhr(url)]));
    },
  },
];
