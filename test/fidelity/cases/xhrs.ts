/** XMLHttpRequest in its details. */
import { bodyOf, give, orLead, pause, refuse, SEGMENT, type FidelityCase, type Tab } from "../kit";

const TEXT = Buffer.from(JSON.stringify({ word: "caf\u00e9", filler: "x".repeat(30_000) }));

/** The browser answers such a request itself. */
const NATIVE = { proof: "led" } as const;
const RANGE = { headers: { range: "bytes=100-60099" } };

const xhr = (name: string, run: (tab: Tab) => Promise<unknown>, more?: Partial<FidelityCase>): FidelityCase => ({
  name: `xhr/${name}`,
  proof: "carried",
  answer: (exchange) => give(exchange, exchange.path.startsWith("/text/") ? TEXT : bodyOf(exchange.path)),
  run: async (tab) => {
    await tab.leadInto(`${tab.away}/v`);
    return run(tab);
  },
  ...more,
});

const withScript = (name: string, script: (tab: Tab) => string, more?: Partial<FidelityCase>): FidelityCase =>
  xhr(name, (tab) => tab.run(`(async () => { ${script(tab)} })()`), more);

export const XHRS: FidelityCase[] = [
  xhr("response-types", async (tab) => {
    const seen: Record<string, unknown> = {};
    await tab.leadInto(`${tab.away}/text`);
    for (const [at, type] of ["", "text", "json", "blob", "arraybuffer", "document"].entries())
      seen[type] = shortened(await tab.xhr(`${tab.away}/text/${at}.ts`, { type }));
    return seen;
  }),
  xhr(
    "override-type",
    (tab) => tab.xhr(`${tab.away}/text/1.ts`, { type: "text", mimeType: "text/plain; charset=latin1" }).then(shortened),
    NATIVE,
  ),
  xhr("abort-at-head", (tab) => tab.xhr(`${tab.away}/v/1.ts`, { abortAt: 2 })),
  xhr("range", (tab) => tab.leadInto(`${tab.away}/v`, RANGE).then(() => tab.xhr(`${tab.away}/v/1.ts`, RANGE))),
  xhr("with-credentials", (tab) => tab.xhr(`${tab.away}/v/1.ts`, { credentials: true }), NATIVE),
  xhr("head", (tab) => tab.xhr(`${tab.away}/v/1.ts`, { method: "HEAD" }), NATIVE),
  xhr("error-status", (tab) => tab.xhr(`${tab.away}/v/1.ts`, { type: "text" }), {
    ...NATIVE,
    answer: orLead((exchange) => refuse(exchange, 404)),
  }),
  xhr("timeout", (tab) => tab.xhr(`${tab.away}/v/1.ts`, { timeout: 1200 }), {
    answer: async (exchange) => {
      if (exchange.path === "/v/1.ts") await pause(4000);
      give(exchange, bodyOf(exchange.path));
    },
  }),
  withScript(
    "used-twice",
    ({ away }) => `
      const xhr = new XMLHttpRequest();
      xhr.responseType = "arraybuffer";
      const found = [];
      for (const name of [1, 2]) {
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
      xhr.open("GET", "${away}/v/1.ts");
      xhr.send();
      xhr.open("GET", "${away}/v/2.ts");
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
      xhr.open("GET", "${away}/v/1.ts");
      xhr.responseType = "arraybuffer";
      found.push(xhr.readyState, failing(() => xhr.responseText));
      found.push(xhr.getAllResponseHeaders(), xhr.getResponseHeader("x"));
      const event = await new Promise((resolve) => {
        xhr.onload = function (event) {
          resolve([this === xhr, event.target === xhr, event.constructor.name]);
        };
        xhr.send();
      });
      return [...found, ...event, xhr.getResponseHeader("Content-Type"), failing(() => { xhr.responseType = "text"; }),
        xhr instanceof XMLHttpRequest, Object.prototype.toString.call(xhr), Object.keys(xhr)];`,
  ),
  withScript(
    "trusted-events",
    ({ away }) => `
      const xhr = new XMLHttpRequest();
      xhr.open("GET", "${away}/v/1.ts");
      xhr.responseType = "arraybuffer";
      const event = await new Promise((resolve) => {
        xhr.onload = resolve;
        xhr.send();
      });
      return event.isTrusted;`,
  ),
  // A listener of uploads makes the browser ask another host for its permission first.
  withScript(
    "upload-listener",
    ({ away }) => `
      const found = [];
      for (const name of ["a", "b"]) {
        const xhr = new XMLHttpRequest();
        xhr.open("GET", "${away}/v/" + (name === "a" ? 1 : 2) + ".ts");
        xhr.responseType = "arraybuffer";
        if (name === "a") xhr.upload.addEventListener("progress", () => found.push("progress"));
        else xhr.upload.onload = () => found.push("load");
        const ended = new Promise((resolve) => (xhr.onloadend = resolve));
        xhr.send();
        await ended;
        found.push([xhr.status, xhr.response === null]);
      }
      return found;`,
    {
      ...NATIVE,
      answer: (exchange) =>
        exchange.request.method === "OPTIONS"
          ? void exchange.response.writeHead(405).end()
          : give(exchange, bodyOf(exchange.path)),
    },
  ),
  withScript(
    "aborted-in-each-handler",
    ({ away }) => `
      const found = [];
      let at = 0;
      for (const where of ["loadstart", "readystatechange 2", "progress", "readystatechange 4", "load", "loadend"]) {
        const xhr = new XMLHttpRequest();
        const events = [];
        let isDone = false;
        for (const name of ["loadstart", "readystatechange", "progress", "load", "abort", "error", "loadend"])
          xhr.addEventListener(name, ({ loaded }) => {
            const what = name === "readystatechange" ? name + " " + xhr.readyState : name;
            if (events.at(-1) !== what && !(
              isDone === false && what === "progress" && events.includes(what))) events.push(what);
            if (what === where && !isDone) { isDone = true; xhr.abort(); events.push("after " + xhr.readyState); }
          });
        xhr.open("GET", "${away}/v/" + ++at + ".ts");
        xhr.responseType = "arraybuffer";
        xhr.send();
        await new Promise((resolve) => setTimeout(resolve, 400));
        found.push([where, events.join(), xhr.readyState, xhr.status, xhr.response, xhr.responseURL,
          xhr.getAllResponseHeaders()]);
      }
      return found;`,
  ),
  withScript(
    "odd-calls",
    ({ away }) => `
      const failing = (work) => { try { return work(); } catch (error) { return see.errorOf(error); } };
      const { prototype } = XMLHttpRequest;
      const found = [failing(() => prototype.open.call({}, "GET", "/x.ts")),
        failing(() => prototype.send.call(document)),
        failing(() => prototype.readyState), failing(() => new XMLHttpRequest().open()),
          failing(() => new XMLHttpRequest().open("GET")),
        failing(() => new XMLHttpRequest().open("BAD METHOD", "/x.ts")),
          failing(() => new XMLHttpRequest().open("GET", "http://[")),
        failing(() => new XMLHttpRequest().getResponseHeader()), failing(() => XMLHttpRequest())];
      const xhr = new XMLHttpRequest();
      xhr.open("get", new URL("${away}/v/1.ts#part"), true, null, undefined);
      xhr.responseType = "nonsense";
      found.push(xhr.responseType, failing(() => xhr.setRequestHeader("bad name", "x")),
        failing(() => xhr.setRequestHeader("Host", "x")));
      xhr.responseType = "arraybuffer";
      await new Promise((resolve) => { xhr.onloadend = resolve; xhr.send(null); });
      found.push(xhr.responseURL, await see.digestOf(xhr.response), xhr.response === xhr.response,
        xhr.getResponseHeader("CONTENT-TYPE"),
        xhr.getResponseHeader("none"), failing(() => xhr.send()), failing(() => xhr.setRequestHeader("a", "b")),
        failing(() => { xhr.withCredentials = true; }), failing(() => xhr.overrideMimeType("a/b")), xhr.readyState);
      xhr.abort();
      found.push(xhr.readyState, xhr.status, xhr.response);
      return found;`,
    NATIVE,
  ),
  withScript(
    "synchronous",
    ({ away }) => `
      const xhr = new XMLHttpRequest();
      xhr.open("GET", "${away}/text/a.ts", false);
      xhr.send();
      return [xhr.status, xhr.responseText.slice(0, 30), xhr.responseURL];`,
    NATIVE,
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
      await tab.leadInto(`${tab.away}/v`);
      const first = (seen: { body?: string }): unknown => seen.body?.slice(0, 40);
      return {
        xhr: first(await tab.xhr(`${tab.away}/v/1.ts?q=\u00e9`, { type: "text" })),
        fetch: first(await tab.fetch(`${tab.away}/v/1.ts?q=\u00e9`, {}, "text")),
      };
    },
  },
  {
    name: "xhr/lengths",
    answer: ({ response, path }) => {
      response.writeHead(200, { ...SEGMENT, ...(!path.endsWith("/2.ts") ? { "content-length": 80_000 } : {}) });
      response.end(bodyOf(path));
    },
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/v`);
      return { known: await tab.xhr(`${tab.away}/v/1.ts`), open: await tab.xhr(`${tab.away}/v/2.ts`) };
    },
  },
];

/** A long text in short. */
function shortened<T extends { body?: unknown }>(seen: T): T {
  return typeof seen.body === "object" && seen.body !== null && "filler" in seen.body
    ? { ...seen, body: (seen.body as unknown as { word: string }).word }
    : seen;
}
