/** XMLHttpRequest in its details. */
import { bodyOf, give, pause, refuse, SEGMENT, type FidelityCase, type Tab } from "../kit";

const TEXT = Buffer.from(JSON.stringify({ word: "caf\u00e9", filler: "x".repeat(30_000) }));

const xhr = (name: string, run: (tab: Tab) => Promise<unknown>, more?: Partial<FidelityCase>): FidelityCase => ({
  name: `xhr/${name}`,
  answer: (exchange) => give(exchange, exchange.path.startsWith("/text/") ? TEXT : bodyOf(exchange.path)),
  run: async (tab) => {
    await tab.leadIn(tab.away);
    return run(tab);
  },
  ...more,
});

const withScript = (name: string, script: (tab: Tab) => string, more?: Partial<FidelityCase>): FidelityCase =>
  xhr(name, (tab) => tab.run(`(async () => { ${script(tab)} })()`), more);

export const XHRS: FidelityCase[] = [
  xhr("response-types", async (tab) => {
    const seen: Record<string, unknown> = {};
    for (const type of ["", "text", "json", "blob", "arraybuffer", "document"])
      seen[type] = shortened(await tab.xhr(`${tab.away}/text/a${type}.ts`, { type }));
    return seen;
  }),
  xhr("override-type", (tab) =>
    tab.xhr(`${tab.away}/text/a.ts`, { type: "text", mimeType: "text/plain; charset=latin1" }).then(shortened),
  ),
  xhr("abort-at-head", (tab) => tab.xhr(`${tab.away}/v/a.ts`, { abortAt: 2 })),
  xhr("range", (tab) => tab.xhr(`${tab.away}/v/a.ts`, { headers: { range: "bytes=100-60099" } })),
  xhr("with-credentials", (tab) => tab.xhr(`${tab.away}/v/a.ts`, { credentials: true })),
  xhr("head", (tab) => tab.xhr(`${tab.away}/v/a.ts`, { method: "HEAD" })),
  xhr("error-status", (tab) => tab.xhr(`${tab.away}/v/a.ts`, { type: "text" }), {
    answer: (exchange) => refuse(exchange, 404),
  }),
  xhr("timeout", (tab) => tab.xhr(`${tab.away}/v/a.ts`, { timeout: 1200 }), {
    answer: async (exchange) => {
      await pause(4000);
      give(exchange, bodyOf(exchange.path));
    },
  }),
  withScript(
    "used-twice",
    ({ away }) => `
      const xhr = new XMLHttpRequest();
      xhr.responseType = "arraybuffer";
      const found = [];
      for (const name of ["a", "b"]) {
        xhr.open("GET", "${away}/v/" + name + ".ts");
        const ended = new Promise((resolve) => (xhr.onloadend = resolve));
        xhr.send();
        await ended;
        found.push([xhr.responseURL, await see.digestOf(xhr.response)]);
      }
      return found;`,
  ),
  withScript(
    "opened-again-in-flight",
    ({ away }) => `
      const xhr = new XMLHttpRequest();
      const events = [];
      for (const name of ["readystatechange", "load", "abort", "loadend"])
        xhr.addEventListener(name, () => events.push(name + " " + xhr.readyState));
      xhr.responseType = "arraybuffer";
      xhr.open("GET", "${away}/v/a.ts");
      xhr.send();
      xhr.open("GET", "${away}/v/b.ts");
      const ended = new Promise((resolve) => (xhr.onloadend = resolve));
      xhr.send();
      await ended;
      const distinct = events.filter((each, at) => each !== events[at - 1]);
      return { events: distinct, url: xhr.responseURL, body: await see.digestOf(xhr.response) };`,
  ),
  withScript(
    "states-and-handlers",
    ({ away }) => `
      const xhr = new XMLHttpRequest();
      const failing = (work) => { try { return work(); } catch (error) { return see.errorOf(error); } };
      const found = [xhr.readyState, failing(() => xhr.send()), xhr.response, xhr.responseURL];
      xhr.open("GET", "${away}/v/a.ts");
      xhr.responseType = "arraybuffer";
      found.push(xhr.readyState, failing(() => xhr.responseText));
      found.push(xhr.getAllResponseHeaders(), xhr.getResponseHeader("x"));
      const event = await new Promise((resolve) => {
        xhr.onload = function (event) {
          resolve([this === xhr, event.target === xhr, event.constructor.name, event.isTrusted]);
        };
        xhr.send();
      });
      return [...found, ...event, xhr.getResponseHeader("Content-Type"), failing(() => { xhr.responseType = "text"; }),
        xhr instanceof XMLHttpRequest, Object.prototype.toString.call(xhr), Object.keys(xhr)];`,
  ),
  withScript(
    "synchronous",
    ({ away }) => `
      const xhr = new XMLHttpRequest();
      xhr.open("GET", "${away}/text/a.ts", false);
      xhr.send();
      return [xhr.status, xhr.responseText.slice(0, 30), xhr.responseURL];`,
  ),
  {
    name: "xhr/page-in-windows-1252",
    pageHeaders: () => ({ "content-type": "text/html; charset=windows-1252" }),
    answer: (exchange) =>
      give(
        exchange,
        Buffer.concat([Buffer.from(`${exchange.request.url} `), bodyOf("filler", 40_000).map(() => 0x61)]),
      ),
    run: async (tab) => {
      await tab.leadIn(tab.away);
      const first = (seen: { body?: string }): unknown => seen.body?.slice(0, 40);
      return {
        xhr: first(await tab.xhr(`${tab.away}/v/a.ts?q=\u00e9`, { type: "text" })),
        fetch: first(await tab.fetch(`${tab.away}/v/a.ts?q=\u00e9`, {}, "text")),
      };
    },
  },
  {
    name: "xhr/lengths",
    answer: ({ response, path }) => {
      response.writeHead(200, { ...SEGMENT, ...(path.includes("known") ? { "content-length": 80_000 } : {}) });
      response.end(bodyOf(path));
    },
    run: async (tab) => {
      await tab.leadIn(tab.away);
      return { known: await tab.xhr(`${tab.away}/v/known.ts`), open: await tab.xhr(`${tab.away}/v/open.ts`) };
    },
  },
];

/** A long text in short. */
function shortened<T extends { body?: unknown }>(seen: T): T {
  return typeof seen.body === "object" && seen.body !== null && "filler" in seen.body
    ? { ...seen, body: (seen.body as unknown as { word: string }).word }
    : seen;
}
