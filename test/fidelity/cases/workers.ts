/** Pages with workers of their own: a service worker answers first, and other workers fetch by themselves. */
import { bodies, bodyOf, give, named, SEGMENT, type Exchange, type FidelityCase, type Tab } from "../kit";

const SEGMENTS = 4;

const script = ({ response }: Exchange, source: string): void =>
  void response.writeHead(200, { "content-type": "text/javascript", "cache-control": "no-store" }).end(source);

const sealed = (path: string): Buffer => bodyOf(path).map((byte) => byte ^ 0x5a) as Buffer;

/** Registers the page's service worker and waits until it controls the page. */
const takeControl = (tab: Tab): Promise<unknown> =>
  tab.run(`(async () => {
    const controlled = new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve));
    await navigator.serviceWorker.register("/worker.js");
    if (navigator.serviceWorker.controller === null) await controlled;
  })()`);

const START = `self.addEventListener("install", () => self.skipWaiting());
  self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));`;

/** The service worker's `fetch` handler for media is `handler`, a function of the event. */
const controlled = (name: string, handler: string, content: (path: string) => Buffer): FidelityCase => ({
  name: `workers/${name}`,
  answer: (exchange) => {
    if (exchange.path === "/worker.js") return script(exchange, `${START}\n${handler}`);
    give(exchange, content(exchange.path), SEGMENT);
  },
  proof: "led",
  run: async (tab) => {
    for (const base of [tab.home, tab.away]) await tab.leadInto(`${base}/v`);
    await takeControl(tab);
    const got = [];
    for (const base of [tab.home, tab.away])
      for (let at = 0; at < SEGMENTS; at++) {
        named(`/v/segment-${at}.ts`, bodyOf(`/v/segment-${at}.ts`));
        got.push(await tab.fetch(`${base}/v/segment-${at}.ts`));
        got.push(await tab.xhr(`${base}/v/segment-${at}.ts`));
      }
    return bodies(got);
  },
});

const OPENS = `self.addEventListener("fetch", (event) => {
  if (!event.request.url.includes("/v/")) return;
  event.respondWith(fetch(event.request).then(async (answer) => {
    const bytes = new Uint8Array(await answer.arrayBuffer()).map((byte) => byte ^ 0x5a);
    return new Response(bytes, { headers: answer.headers });
  }));
});`;

export const WORKERS: FidelityCase[] = [
  controlled("service-worker-opens-sealed-segments", OPENS, sealed),
  controlled(
    "service-worker-makes-answers",
    `self.addEventListener("fetch", (event) => {
      if (event.request.url.includes("/v/")) event.respondWith(new Response("made by the worker"));
    });`,
    bodyOf,
  ),
  controlled(
    "service-worker-refuses",
    `self.addEventListener("fetch", (event) => {
      if (event.request.url.includes("/v/")) event.respondWith(Response.error());
    });`,
    bodyOf,
  ),
  controlled(
    "service-worker-passes-on",
    `self.addEventListener("fetch", (event) => event.respondWith(fetch(event.request)));`,
    bodyOf,
  ),
  controlled("service-worker-without-fetch", "", bodyOf),
  {
    name: "workers/dedicated-worker",
    answer: (exchange) =>
      exchange.path === "/worker.js"
        ? script(
            exchange,
            `onmessage = async ({ data }) => {
            const bytes = await (await fetch(data)).arrayBuffer();
            postMessage(bytes);
          };`,
          )
        : give(exchange, bodyOf(exchange.path)),
    proof: "led",
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/v`);
      return tab.run(`new Promise((resolve) => {
        const worker = new Worker("/worker.js");
        worker.onmessage = async ({ data }) => resolve(await see.digestOf(data));
        worker.onerror = (event) => resolve(event.message);
        worker.postMessage("${tab.away}/v/1.ts");
      })`);
    },
  },
  {
    name: "workers/frame-without-scripts-of-its-own",
    answer: (exchange) => give(exchange, bodyOf(exchange.path)),
    proof: "led",
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/v`);
      return tab.run(`(async () => {
        const frame = document.createElement("iframe");
        document.body.append(frame);
        const answer = await frame.contentWindow.fetch("${tab.away}/v/1.ts");
        return see.digestOf(await answer.arrayBuffer());
      })()`);
    },
  },
];
