/** Pages: where in a page a request is made, what the page did to its own functions, and how it comes and goes. */
import { bodies, bodyOf, give, pause, type Exchange, type FidelityCase, type Tab } from "../kit";

const segment: FidelityCase["answer"] = (exchange) => give(exchange, bodyOf(exchange.path));
const page = ({ response }: Exchange, html: string, headers: object = {}): void =>
  void response
    .writeHead(200, { "content-type": "text/html; charset=utf-8", ...headers })
    .end(`<!doctype html>${html}`);
const script = ({ response }: Exchange, source: string): void =>
  void response.writeHead(200, { "content-type": "text/javascript" }).end(source);

const inPage = (name: string, source: (tab: Tab) => string, more?: Partial<FidelityCase>): FidelityCase => ({
  name: `pages/${name}`,
  proof: "led",
  answer: segment,
  ...more,
  run: async (tab) => {
    await tab.leadInto(`${tab.away}/v`);
    return tab.run(`(async () => {
      const url = "${tab.away}/v/1.ts";
      const failing = (work) => Promise.resolve().then(work).catch((error) => see.errorOf(error));
      const digest = async (answer) => see.digestOf(await answer.arrayBuffer());
      const within = (work) => Promise.race([work, new Promise((resolve) => setTimeout(resolve, 5000, "late"))]);
      ${source(tab)}
    })()`);
  },
});

const FRAME = `<script>
  onmessage = async ({ data }) => {
    const seen = [];
    for (let at = 0; at < 4; at++)
      seen.push(await fetch(data + at + ".ts").then(async (answer) => [answer.status, answer.url, answer.type,
        (await answer.arrayBuffer()).byteLength], (error) => error.name));
    parent.postMessage(seen, "*");
  };
  parent.postMessage("ready", "*");
</script>`;

const framed = (name: string, attributes: (tab: Tab) => string): FidelityCase =>
  inPage(
    `frame-${name}`,
    (tab) => `
      const frame = document.createElement("iframe");
      const heard = new Promise((resolve) => (onmessage = ({ data }) =>
        data === "ready" ? frame.contentWindow.postMessage("${tab.away}/v/", "*") : resolve(data)));
      Object.assign(frame, ${attributes(tab)});
      document.body.append(frame);
      return within(heard);`,
    { answer: (exchange) => (exchange.path === "/frame.html" ? page(exchange, FRAME) : segment(exchange)) },
  );

const worker = (name: string, source: (tab: Tab) => string): FidelityCase =>
  inPage(
    `worker-${name}`,
    (tab) => `const heard = new Promise((resolve, reject) => { ${source(tab)} }); return within(heard);`,
    {
      answer: (exchange) =>
        exchange.path === "/worker.js"
          ? script(
              exchange,
              `const say = async (port, url) => port.postMessage(await fetch(url).then(async (answer) =>
               [answer.status, answer.url, (await answer.arrayBuffer()).byteLength], (error) => error.name));
             onmessage = ({ data }) => say(self, data);
             onconnect = ({ ports: [port] }) => (port.onmessage = ({ data }) => say(port, data));`,
            )
          : segment(exchange),
    },
  );

export const PAGES: FidelityCase[] = [
  framed("of-the-same-host", () => `{ src: "/frame.html" }`),
  framed("of-another-host", (tab) => `{ src: "${tab.third}/frame.html" }`),
  framed("by-srcdoc", () => `{ srcdoc: ${JSON.stringify(FRAME).replaceAll("</", "<\\/")} }`),
  framed("sandboxed", () => `{ sandbox: "allow-scripts", src: "/frame.html" }`),
  framed(
    "by-data",
    () => `{ src: "data:text/html," + encodeURIComponent(${JSON.stringify(FRAME).replaceAll("</", "<\\/")}) }`,
  ),
  framed(
    "by-blob",
    () =>
      `{ src: URL.createObjectURL(new Blob([${JSON.stringify(FRAME).replaceAll("</", "<\\/")}], {
        type: "text/html" })) }`,
  ),
  worker(
    "dedicated",
    () => `const made = new Worker("/worker.js"); made.onmessage = ({ data }) => resolve(data); made.postMessage(url);`,
  ),
  worker(
    "shared",
    () =>
      `const made = new SharedWorker("/worker.js"); made.port.onmessage = ({ data }) => resolve(data);
        made.port.postMessage(url);`,
  ),
  worker(
    "of-a-blob",
    () => `const made = new Worker(URL.createObjectURL(
      new Blob(["importScripts('" + location.origin + "/worker.js')"])));
    made.onmessage = ({ data }) => resolve(data); made.onerror = ({ message }) => resolve(message);
      made.postMessage(url);`,
  ),
  inPage(
    "functions-wrapped-later",
    () => `
      const calls = [];
      const note = (owner, name) => {
        const before = owner[name];
        owner[name] = function (...args) { calls.push(name); return before.apply(this, args); };
      };
      note(window, "fetch");
      for (const name of ["arrayBuffer", "clone"]) note(Response.prototype, name);
      for (const name of ["open", "send", "setRequestHeader"]) note(XMLHttpRequest.prototype, name);
      const got = [await digest(await fetch(url)), await digest((await fetch(url)).clone())];
      const xhr = await see.xhr(url, { headers: { accept: "*/*" } });
      return [calls, got, xhr.body, xhr.events];`,
    { proof: "carried" },
  ),
  inPage(
    "functions-of-a-frame",
    () => `
      const frame = document.createElement("iframe");
      document.body.append(frame);
      const { fetch: other, XMLHttpRequest: Other } = frame.contentWindow;
      const xhr = new Other();
      xhr.open("GET", url);
      xhr.responseType = "arraybuffer";
      await new Promise((resolve) => { xhr.onloadend = resolve; xhr.send(); });
      return [await failing(async () => digest(await other(url))),
        await failing(async () => digest(await other.call(window, url))),
        xhr.status, xhr.response.constructor === frame.contentWindow.ArrayBuffer,
        await failing(() => XMLHttpRequest.prototype.open.call(new Other(), "GET", url)),
        await failing(async () => digest(await fetch(new frame.contentWindow.Request(url))))];`,
  ),
  inPage(
    "document-opened-anew",
    () => `
      document.open();
      document.write("<!doctype html><title>new</title><body>new");
      document.close();
      const got = [];
      for (let at = 1; at < 4; at++) got.push(await digest(await fetch(url.replace("1.ts", at + ".ts"))));
      return got;`,
  ),
  inPage(
    "names-of-the-window",
    () => `
      await fetch(url);
      const mine = ["see"];
      return Object.getOwnPropertyNames(window).filter((name) => !mine.includes(name)).length + " " +
        [Response, Headers, XMLHttpRequest, HTMLMediaElement].map(({
          prototype }) => Object.getOwnPropertyNames(prototype).length);`,
  ),
  inPage(
    "shape-of-functions",
    () => `
      await fetch(url);
      const facts = [];
      for (const [owner, names] of [[window, ["fetch"]], [Response.prototype, ["clone", "json", "url"]],
        [XMLHttpRequest.prototype, ["open", "send", "abort", "response", "readyState"]], [HTMLMediaElement.prototype,
          ["play"]]])
        for (const name of names) {
          const found = Object.getOwnPropertyDescriptor(owner, name);
          const made = found.value ?? found.get;
          facts.push([name, Object.keys(found).join(), made.name, made.length, String(made),
            Object.getOwnPropertyNames(made).sort().join(),
            "prototype" in made, await failing(() => new made()), await failing(() => made.call(5)), found.enumerable,
              found.writable]);
        }
      return facts;`,
  ),
  {
    name: "pages/isolated",
    proof: "carried",
    pageHeaders: () => ({
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-embedder-policy": "require-corp",
    }),
    answer: segment,
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/v`);
      return {
        isolated: await tab.run("crossOriginIsolated"),
        got: [await tab.fetch(`${tab.away}/v/1.ts`), await tab.xhr(`${tab.away}/v/2.ts`)],
      };
    },
  },
  {
    name: "pages/back-and-forward",
    answer: (exchange) => (exchange.path === "/other.html" ? page(exchange, "other") : segment(exchange)),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/v`);
      await tab.run(
        `(window.mark = 1, addEventListener("pageshow", ({ persisted }) => (window.persisted = persisted)))`,
      );
      await tab.page.goto(`${tab.home}/other.html`, { waitUntil: "load" });
      await tab.page.goBack({ waitUntil: "load" });
      await pause(300);
      const kept = await tab.run("[window.mark, window.persisted]");
      const got =
        await tab.run(`Promise.all([1, 2, 3].map((at) => fetch("${tab.away}/v/" + at + ".ts").then(async (answer) =>
        (await answer.arrayBuffer()).byteLength)))`);
      return { kept, got };
    },
  },
  {
    name: "pages/cookies-of-paths",
    // The page's own host gives each viewer a cookie for a path, as signed cookies do.
    answer: (exchange) => {
      if (exchange.path === "/enter")
        return void exchange.response.writeHead(204, { "set-cookie": "pass=1; Path=/paid/" }).end();
      const isFriend = !exchange.path.startsWith("/paid/") || /pass=1/.test(exchange.request.headers.cookie ?? "");
      if (isFriend) give(exchange, bodyOf(exchange.path), { "content-type": "video/mp2t" });
      else exchange.response.writeHead(403).end();
    },
    run: async (tab) => {
      await tab.leadInto(`${tab.home}/free`);
      await tab.fetch(`${tab.home}/enter`);
      const got = [];
      for (let at = 0; at < 6; at++)
        got.push(await tab.fetch(`${tab.home}/paid/${at}.ts`), await tab.fetch(`${tab.home}/free/${at}.ts`));
      return bodies(got);
    },
  },
  {
    name: "pages/navigation-preload",
    answer: (exchange) =>
      exchange.path === "/worker.js"
        ? script(
            exchange,
            `addEventListener("install", () => skipWaiting());
             addEventListener("activate",
               (event) => event.waitUntil(registration.navigationPreload.enable().then(() => clients.claim())));
             addEventListener("fetch", (event) => {
               if (event.request.mode === "navigate") event.respondWith(
                 event.preloadResponse.then((answer) => answer ?? fetch(event.request)));
               else if (event.request.url.includes("/v/")) event.respondWith(fetch(event.request).then((answer) =>
                 new Response(answer.body, { headers: { "content-type": "video/mp2t", "x-worker": "1" } })));
             });`,
          )
        : segment(exchange),
    run: async (tab) => {
      await tab.run(`navigator.serviceWorker.register("/worker.js").then(() => navigator.serviceWorker.ready)`);
      await tab.page.reload({ waitUntil: "load" });
      return tab.run(`(async () => {
        const seen = [];
        for (let at = 0; at < 4; at++) {
          const answer = await fetch("${tab.away}/v/" + at + ".ts");
          seen.push([answer.headers.get("x-worker"), (await answer.arrayBuffer()).byteLength]);
        }
        return seen;
      })()`);
    },
  },
  {
    name: "pages/prerendered",
    answer: (exchange) =>
      exchange.path === "/next.html"
        ? page(
            exchange,
            `<script>
              const early = document.prerendering;
              window.seen = (async () => {
                const seen = [early];
                for (let at = 0; at < 4;
                  at++) seen.push((await (await fetch(
                    "${exchange.hosts.away}/v/" + at + ".ts")).arrayBuffer()).byteLength);
                return seen;
              })();
            </script>`,
          )
        : segment(exchange),
    run: async (tab) => {
      await tab.run(`(() => {
        const rules = document.createElement("script");
        rules.type = "speculationrules";
        rules.textContent = JSON.stringify({ prerender: [{ urls: ["/next.html"], eagerness: "immediate" }] });
        document.head.append(rules);
      })()`);
      await pause(1500);
      await Promise.all([
        tab.page.waitForNavigation({ waitUntil: "load" }),
        tab.run(`void (location.href = "/next.html")`),
      ]);
      return tab.run("window.seen");
    },
  },
  {
    name: "pages/host-named-with-a-dot",
    answer: segment,
    run: async (tab) => {
      const base = tab.away.replace("127.0.0.1", "localhost");
      const got = [];
      for (let at = 0; at < 4; at++)
        got.push(
          await tab.fetch(`${base}/v/${at}.ts`),
          await tab.fetch(`${base.replace("localhost", "localhost.")}/v/${at}.ts`),
        );
      return bodies(got);
    },
  },
];
