/** Shapes of sites and players: how they write addresses, ask, stop asking and read, and how their hosts send. */
import { gzipSync } from "node:zlib";
import { bodies, bodyOf, give, OPEN_CORS, orLead, pause, refuse, SEGMENT, type FidelityCase, type Tab } from "../kit";

const segment: FidelityCase["answer"] = (exchange) => give(exchange, bodyOf(exchange.path));

/** Runs a script after a lead into `/s` of another host, or of the page's own. */
const reads = (name: string, script: string, more?: Partial<FidelityCase> & { own?: boolean }): FidelityCase => ({
  name: `shapes/${name}`,
  proof: "carried",
  answer: segment,
  ...more,
  run: async (tab) => {
    const base = more?.own ? tab.home : tab.away;
    await tab.leadInto(`${base}/s`);
    return tab.run(`(async () => {
      const [base, path] = ["${base}", "/s/"];
      const url = base + path + "1.ts";
      const failing = (work) => Promise.resolve().then(work).catch((error) => see.errorOf(error));
      const digest = async (answer) => see.digestOf(await answer.arrayBuffer());
      const asked = (...args) => failing(async () => digest(await fetch(...args)));
      ${script}
    })()`);
  },
});

/** Asks for ranges of one file. */
const ranges = (
  name: string,
  answer: FidelityCase["answer"],
  list: string[],
  more?: Partial<FidelityCase>,
): FidelityCase => ({
  name: `shapes/${name}`,
  proof: "compared",
  answer,
  ...more,
  run: async (tab) => {
    const seen = [];
    for (const range of list) {
      seen.push(await tab.fetch(`${tab.away}/r/film.mp4`, { headers: { range } }));
      seen.push(await tab.xhr(`${tab.away}/r/film.mp4`, { headers: { range } }));
    }
    return seen;
  },
});
const ROW = [0, 1, 2, 3, 4, 5].map((at) => `bytes=${at * 50_000}-${at * 50_000 + 49_999}`);
const FILM = (): Buffer => bodyOf("film", 300_000);

export const SHAPES: FidelityCase[] = [
  reads(
    "addresses",
    `const found = [];
     const port = new URL(base).port;
     for (const address of [url + "#a", new URL(url), "  " + url + "\\n", url.replace("http", "HTTP"),
       url.replace("/s/", "/s/./x/../"),
       url + "?", url + "?a=b#c", url.replace("1.ts", "%31.ts"), url.replace("/s/", "/s//"), url.replace("//",
         "\\\\\\\\"),
       base + "/s/\u00e9.ts?q=\u00e9", url.replace("http://", "http://me@")]) {
       const answer = await failing(() => fetch(address));
       found.push(typeof answer === "string" ? answer : [answer.url, answer.status, await digest(answer)]);
     }
     return found;`,
  ),
  reads(
    "calls",
    `const other = fetch;
     return [await asked.call(null, url), await failing(async () => digest(await other(url))),
       await failing(async () => digest(await Reflect.apply(fetch, undefined, [url]))),
       await failing(async () => digest(await fetch.call(window, url))),
       await failing(() => fetch.call({}, url)), await failing(() => fetch()), await failing(() => new fetch(url)),
       await asked({ toString: () => url }), await asked(url, null), await asked(url, undefined), await asked(url, 5),
       await asked(url, { headers: [["range", "bytes=0-9"]] }), await asked(url, { headers: { Range: "bytes=0-9",
         range: "bytes=1-2" } }),
       await asked(url, { method: "get" }), await asked(url, { method: "GeT" }), await asked(url, { body: null }),
       await asked(url, { body: "x" }), await asked(url, { method: "TRACE" }), await asked(url, { mode: "navigate" }),
       await asked(url, { cache: "nonsense" }), await asked(url, { signal: 5 }), await asked(url, { window: 5 }),
       await asked(url, { duplex: "half" }), await asked(url, { unknown: 1 })];`,
  ),
  reads(
    "requests",
    `const request = new Request(url);
     const found = [await asked(request), await asked(request), request.bodyUsed];
     const control = new AbortController();
     found.push(await asked(new Request(url, { signal: control.signal })), await asked(request, {
       signal: control.signal }));
     control.abort(new RangeError("mine"));
     found.push(await asked(new Request(url, { signal: control.signal })), await asked(request, {
       signal: control.signal }));
     found.push(await asked(new Request(request, { headers: { accept: "a/b" } })), await asked(request.clone()));
     class Mine extends Request {}
     found.push(await asked(new Mine(url)), await asked(new Request(url, { method: "POST", body: "x" })));
     return found;`,
  ),
  reads(
    "byob",
    `const reader = (await fetch(url)).body.getReader({ mode: "byob" });
     const parts = [];
     for (;;) {
       const { done, value } = await reader.read(new Uint8Array(1000 + parts.length));
       if (done) { parts.push([value?.byteLength]); break; }
       parts.push(value);
     }
     const last = parts.pop();
     const two = await fetch(url);
     const first = two.body.getReader({ mode: "byob" });
     const { value } = await first.read(new Uint16Array(500));
     first.releaseLock();
     const rest = [];
     for await (const part of two.body) rest.push(part);
     return [await see.digestOf(await new Blob(parts).arrayBuffer()), last, value.constructor.name, value.length,
       await see.digestOf(await new Blob([value, ...rest]).arrayBuffer()), two.bodyUsed, two.body.locked];`,
  ),
  reads(
    "tee-and-pipe",
    `const [one, two] = (await fetch(url)).body.tee();
     const found = await Promise.all([one, two].map((stream) => digest(new Response(stream))));
     const piped = (await fetch(url)).body.pipeThrough(new TransformStream());
     found.push(await digest(new Response(piped)));
     const cloned = await fetch(url);
     const copy = cloned.clone();
     const again = copy.clone();
     found.push(...(await Promise.all([cloned, again, copy].map(digest))));
     const answer = new Response((await fetch(url)).body, { headers: { "x-a": "b" } });
     found.push(answer.url, answer.type, await digest(answer));
     const half = await fetch(url);
     const kept = half.clone();
     void half.body.cancel("enough");
     found.push(half.bodyUsed, await digest(kept), await failing(() => half.arrayBuffer()));
     return found;`,
  ),
  reads(
    "readers",
    `const found = [];
     for (const reader of ["arrayBuffer", "blob", "bytes", "formData", "json", "text"]) {
       const answer = await fetch(url);
       const got = await failing(() => answer[reader]());
       found.push([reader, typeof got === "string" ? got.slice(0, 60) : Object.prototype.toString.call(got),
         answer.bodyUsed,
         await failing(() => answer[reader]())]);
       found.push(Object.prototype.hasOwnProperty.call(answer, reader), typeof Response.prototype[reader]);
     }
     return found;`,
  ),
  reads(
    "signals",
    `const found = [];
     const any = new AbortController();
     found.push(await asked(url, { signal: AbortSignal.any([any.signal, AbortSignal.timeout(20000)]) }));
     found.push(await asked(base + "/s/1001.ts", { signal: AbortSignal.timeout(300) }));
     const late = fetch(base + "/s/1002.ts", { signal: AbortSignal.any([any.signal]) });
     setTimeout(() => any.abort(), 200);
     found.push(await failing(() => late));
     const why = new AbortController();
     const stopped = fetch(base + "/s/1003.ts", { signal: why.signal });
     setTimeout(() => why.abort("a word"), 100);
     found.push(await stopped.catch((reason) => reason));
     const after = new AbortController();
     const whole = await digest(await fetch(url, { signal: after.signal }));
     after.abort();
     return [...found, whole];`,
    {
      answer: async (exchange) => {
        if (exchange.path.startsWith("/s/100")) await pause(3000);
        give(exchange, bodyOf(exchange.path));
      },
    },
  ),
  reads(
    "abort-in-the-body",
    `const control = new AbortController();
     const answer = await fetch(base + "/s/2.ts", { signal: control.signal });
     const reader = answer.body.getReader();
     const { value } = await reader.read();
     control.abort();
     const next = await failing(() => reader.read());
     const closed = await failing(() => reader.closed);
     const other = new AbortController();
     const second = await fetch(base + "/s/2.ts?2", { signal: other.signal });
     setTimeout(() => other.abort(), 100);
     return [value.length > 0, next, closed, await failing(() => second.arrayBuffer())];`,
    {
      answer: async (exchange) => {
        const { response, path } = exchange;
        if (path !== "/s/2.ts") return give(exchange, bodyOf(path));
        const body = bodyOf(path, 400_000);
        response.writeHead(200, { ...SEGMENT, "content-length": body.length });
        response.write(body.subarray(0, 200_000));
        await pause(2500);
        response.end(body.subarray(200_000));
      },
    },
  ),
  reads(
    "options",
    `const bytes = await (await fetch(url)).arrayBuffer();
     const sum = btoa(String.fromCharCode(...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))));
     return [await asked(url, { integrity: "sha256-" + sum }), await asked(url, {
       integrity: "sha256-" + sum.replace(/./, "!") }),
       await asked(url, { keepalive: true }), await asked(url, { priority: "high" }), await asked(url, {
         priority: "auto" }),
       await asked(url, { redirect: "error" }), await asked(url, { redirect: "manual" }),
       await asked(url, { credentials: "omit" }), await asked(url, { credentials: "same-origin" }),
       await asked(url, { referrer: "" }), await asked(url, { referrer: "/other" }),
       ...(await Promise.all(["no-referrer", "origin", "unsafe-url", "same-origin", "strict-origin"].map((policy) =>
         asked(url, { referrerPolicy: policy })))),
       await asked(url, { mode: "same-origin" }), await asked(url, { mode: "no-cors" }), await asked(url, {
         mode: "cors" })];`,
  ),
  reads(
    "referrer-heard",
    `const found = [];
     for (const init of [{}, { referrerPolicy: "no-referrer" }, { referrerPolicy: "unsafe-url" }, { referrer: "/x" }])
       found.push(await (await fetch(base + "/tell.ts", init)).text());
     return found;`,
    {
      proof: "led",
      answer: (exchange) =>
        exchange.path === "/tell.ts"
          ? give(exchange, Buffer.from((exchange.request.headers.referer ?? "none").padEnd(20_000)))
          : segment(exchange),
    },
  ),
  reads(
    "head-before-get",
    `const head = await fetch(url, { method: "HEAD" });
     return [head.status, head.headers.get("content-length"), await digest(head), await asked(url)];`,
    { proof: "led" },
  ),
  reads(
    "conditional",
    `const first = await fetch(url);
     const etag = first.headers.get("etag");
     const found = [etag, await digest(first)];
     for (const headers of [{ "if-none-match": etag }, { "if-modified-since": new Date().toUTCString() },
       { "if-range": etag, range: "bytes=0-99" }, { "if-match": '"no"' }]) {
       const answer = await failing(() => fetch(url, { headers }));
       found.push(typeof answer === "string" ? answer : [answer.status, await digest(answer)]);
     }
     return found;`,
    {
      own: true,
      answer: (exchange) => {
        const headers = { "content-type": "video/mp2t", etag: '"v"' };
        if (exchange.request.headers["if-none-match"] === '"v"')
          return void exchange.response.writeHead(304, headers).end();
        if (exchange.request.headers["if-match"] !== undefined) return refuse(exchange, 412);
        give(exchange, bodyOf(exchange.path), headers);
      },
    },
  ),
  {
    name: "shapes/body-that-grows",
    // The origin sends the second half once the page has told that it has the first one.
    proof: "carried",
    answer: async (exchange) => {
      const { response, path, memory } = exchange;
      if (path === "/told") {
        memory["told"] = 1;
        return void response.writeHead(204, OPEN_CORS).end();
      }
      if (path !== "/s/1.ts") return give(exchange, bodyOf(path));
      const body = bodyOf(path);
      response.writeHead(200, SEGMENT);
      response.write(body.subarray(0, 40_000));
      for (let waits = 0; waits < 40 && memory["told"] === undefined; waits++) await pause(100);
      response.end(body.subarray(40_000));
    },
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/s`);
      return tab.run(`(async () => {
        const answer = await fetch("${tab.away}/s/1.ts");
        const parts = [];
        let bytes = 0;
        const startedMs = performance.now();
        for await (const part of answer.body) {
          if (bytes < 40_000 && bytes + part.length >= 40_000) await fetch("${tab.away}/told");
          bytes += part.length;
          parts.push(part);
        }
        return [await see.digestOf(await new Blob(parts).arrayBuffer()), performance.now() - startedMs < 3000];
      })()`);
    },
  },
  {
    name: "shapes/parts-that-block",
    // As low-latency HLS does: a part is asked for before it is there.
    proof: "led",
    answer: orLead(async (exchange) => {
      await pause(700);
      give(exchange, bodyOf(exchange.path, 30_000));
    }),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/p`);
      const got = [];
      for (let at = 0; at < 6; at++) got.push(await tab.fetch(`${tab.away}/p/part-${at}.ts`));
      return bodies(got);
    },
  },
  ranges("byte-ranges", (exchange) => give(exchange, FILM()), ROW, { proof: "carried" }),
  ranges(
    "ranges-ignored",
    ({ response }) => void response.writeHead(200, { ...SEGMENT, "content-length": 300_000 }).end(FILM()),
    ROW.slice(0, 3),
  ),
  ranges(
    "ranges-of-a-growing-file",
    (exchange) => {
      const { memory, request, response } = exchange;
      const total = 300_000 + 1000 * (memory["count"] = (memory["count"] ?? 0) + 1);
      const [, first, last] = (/^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? ["", "0", "9"]).map(Number);
      response.writeHead(206, {
        ...SEGMENT,
        "content-range": `bytes ${first}-${last}/${total}`,
        "content-length": last! - first! + 1,
      });
      response.end(FILM().subarray(first, last! + 1));
    },
    ROW,
  ),
  ranges(
    "ranges-of-unknown-length",
    (exchange) => {
      const { request, response } = exchange;
      const [, first, last] = (/^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? ["", "0", "9"]).map(Number);
      response.writeHead(206, {
        ...SEGMENT,
        "content-range": `bytes ${first}-${last}/*`,
        "access-control-expose-headers": "content-range",
      });
      response.end(FILM().subarray(first, last! + 1));
    },
    ROW,
  ),
  ranges(
    "shorter-range-than-asked",
    (exchange) => {
      const { request, response } = exchange;
      const [, first] = (/^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? ["", "0", "9"]).map(Number);
      response.writeHead(206, {
        ...SEGMENT,
        "content-range": `bytes ${first}-${first! + 29_999}/300000`,
        "content-length": 30_000,
      });
      response.end(FILM().subarray(first, first! + 30_000));
    },
    ROW.slice(0, 3),
  ),
  ranges(
    "wrong-content-range",
    (exchange) => {
      const { response } = exchange;
      response.writeHead(206, { ...SEGMENT, "content-range": `bytes 0-49999/300000`, "content-length": 50_000 });
      response.end(FILM().subarray(0, 50_000));
    },
    ROW.slice(0, 3),
  ),
  ranges(
    "no-content-range",
    (exchange) => {
      const { response } = exchange;
      response.writeHead(206, { ...SEGMENT, "content-length": 50_000 });
      response.end(FILM().subarray(0, 50_000));
    },
    ROW.slice(0, 3),
  ),
  ranges(
    "several-ranges",
    ({ response }) =>
      void response
        .writeHead(206, { ...SEGMENT, "content-type": "multipart/byteranges; boundary=x" })
        .end(`--x\r\nContent-Range: bytes 0-9/300000\r\n\r\n0123456789\r\n--x--`),
    ["bytes=0-9,20-29", "bytes=0-9", "bytes=-20", "bytes=5-"],
  ),
  {
    name: "shapes/partial-without-a-range",
    proof: "compared",
    answer: orLead(({ response, path }) => {
      response
        .writeHead(206, { ...SEGMENT, "content-range": "bytes 0-79999/80000", "content-length": 80_000 })
        .end(bodyOf(path));
    }),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/s`);
      return [await tab.fetch(`${tab.away}/s/1.ts`), await tab.xhr(`${tab.away}/s/2.ts`)];
    },
  },
  {
    name: "shapes/always-compressed",
    proof: "compared",
    answer: orLead(({ response, path }) => {
      response.writeHead(200, { ...SEGMENT, "content-encoding": "gzip" }).end(gzipSync(bodyOf(path)));
    }),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/s`);
      const got = [];
      for (let at = 0; at < 4; at++)
        got.push(await tab.fetch(`${tab.away}/s/${at}.ts`), await tab.xhr(`${tab.away}/s/x${at}.ts`));
      return got;
    },
  },
  {
    name: "shapes/one-time-tokens",
    // Each answer of the home host names another address of the other host, which is good once.
    answer: (exchange) => {
      const { host, memory, path, response, url, hosts } = exchange;
      if (host === 0) {
        const token = (memory["tokens"] = (memory["tokens"] ?? 0) + 1);
        return void response.writeHead(302, { ...OPEN_CORS, location: `${hosts.away}${path}?token=${token}` }).end();
      }
      const used = `used ${url.searchParams.get("token")}`;
      if (memory[used]) return refuse(exchange, 403);
      memory[used] = 1;
      give(exchange, bodyOf(path));
    },
    run: async (tab) => {
      const got = [];
      for (let at = 0; at < 12; at++) got.push(await tab.fetch(`${tab.home}/v/${at}.ts`));
      return bodies(got);
    },
  },
  {
    name: "shapes/clear-site-data",
    answer: (exchange) =>
      give(exchange, bodyOf(exchange.path), {
        "content-type": "video/mp2t",
        ...(exchange.path === "/s/1.ts" ? { "clear-site-data": '"storage"' } : {}),
      }),
    run: async (tab) => {
      await tab.run(`localStorage.setItem("a", "b")`);
      await tab.leadInto(`${tab.home}/s`);
      await tab.fetch(`${tab.home}/s/1.ts`);
      await pause(500);
      return tab.run(`localStorage.getItem("a")`);
    },
  },
  {
    name: "shapes/early-hints",
    proof: "compared",
    answer: orLead((exchange) => {
      exchange.response.writeEarlyHints({ link: "</x.css>; rel=preload; as=style" });
      give(exchange, bodyOf(exchange.path));
    }),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/s`);
      return [await tab.fetch(`${tab.away}/s/1.ts`), await tab.xhr(`${tab.away}/s/2.ts`)];
    },
  },
  {
    name: "shapes/failover-between-hosts",
    proof: "led",
    // The first host ends in the middle of the stream. The page goes on at the second one.
    answer: (exchange) =>
      exchange.host === 1 && /-(?:[3-9])\.ts$/.test(exchange.path)
        ? refuse(exchange, 503, { "retry-after": "120" })
        : give(exchange, bodyOf(exchange.path)),
    run: async (tab: Tab) => {
      await tab.leadInto(`${tab.away}/v`);
      const seen = [];
      let base = tab.away;
      for (let at = 0; at < 8; at++) {
        let answer = await tab.fetch(`${base}/v/segment-${at}.ts`);
        if (answer.status !== 200) answer = await tab.fetch(`${(base = tab.third)}/v/segment-${at}.ts`);
        seen.push([answer.status, answer["url"], answer.body]);
      }
      return seen;
    },
  },
];
