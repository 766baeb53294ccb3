/** Headers and objects: what a page reads of an answer besides its bytes. */
import type { OutgoingHttpHeaders } from "node:http";
import { gzipSync } from "node:zlib";
import { bodyOf, give, OPEN_CORS, SEGMENT, type FidelityCase, type Tab } from "../kit";

const MANY: OutgoingHttpHeaders = {
  "content-type": "video/mp2t; codecs=avc1",
  "cache-control": "max-age=7",
  "content-language": "en, fr",
  "last-modified": "Mon, 02 Nov 2026 10:00:00 GMT",
  expires: "Mon, 02 Nov 2026 11:00:00 GMT",
  pragma: "x",
  date: "Mon, 02 Nov 2026 10:30:00 GMT",
  age: "3",
  etag: '"many"',
  "accept-ranges": "bytes",
  server: "unusual/1",
  via: "1.1 somewhere",
  "x-cache": "HIT",
  "x-twice": ["one", "two"],
  "cmsd-static": 'ot=v,sf=h,st=v,d=4000,br=2000,n="origin"',
  "cmsd-dynamic": '"edge";etp=115;rtt=16',
  "server-timing": "cdn;dur=12",
  "timing-allow-origin": "*",
  vary: "Accept-Encoding",
  link: "</next.ts>; rel=prefetch",
};

const both = (base: (tab: Tab) => string) => async (tab: Tab) => {
  await tab.leadInto(`${base(tab)}/h`);
  return { fetch: await tab.fetch(`${base(tab)}/h/1.ts`), xhr: await tab.xhr(`${base(tab)}/h/2.ts`) };
};
const away = ({ away: base }: Tab): string => base;
const home = ({ home: base }: Tab): string => base;

const heads = (
  name: string,
  headers: OutgoingHttpHeaders,
  base: (tab: Tab) => string = away,
  more?: Partial<FidelityCase>,
): FidelityCase => ({
  name: `heads/${name}`,
  proof: "carried",
  answer: (exchange) => give(exchange, bodyOf(exchange.path), headers),
  run: both(base),
  ...more,
});

/** A script that reads something of an answer of another host. */
const reads = (
  name: string,
  script: string,
  headers: OutgoingHttpHeaders = SEGMENT,
  more?: Partial<FidelityCase>,
): FidelityCase =>
  heads(name, headers, away, {
    ...more,
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/h`);
      return tab.run(`(async () => {
        const url = "${tab.away}/h/1.ts";
        const failing = (work) => Promise.resolve().then(work).catch((error) => see.errorOf(error));
        ${script}
      })()`);
    },
  });

export const HEADS: FidelityCase[] = [
  heads("safelisted", { ...MANY, ...OPEN_CORS }),
  heads("exposed", {
    ...MANY,
    ...OPEN_CORS,
    "access-control-expose-headers":
      "Age, Date, ETag, X-Cache, X-Twice, CMSD-Static, CMSD-Dynamic, Server-Timing, X-No",
  }),
  heads("exposed-by-star", { ...MANY, ...OPEN_CORS, "access-control-expose-headers": "*" }),
  heads("own-host", MANY, home),
  heads("without-type", OPEN_CORS),
  heads("odd-type", { ...OPEN_CORS, "content-type": "Video/MP2T ; Charset=UTF-8" }),
  heads("latin-1-value", { ...SEGMENT, "content-language": "caf\u00e9", "access-control-expose-headers": "*" }),
  heads("set-cookie-of-own-host", { "content-type": "video/mp2t", "set-cookie": "seen=1; Path=/" }, home, {
    proof: "compared",
    run: async (tab) => {
      await tab.leadIn(tab.home);
      const answer = await tab.fetch(`${tab.home}/h/1.ts`);
      return { answer, cookie: await tab.run("document.cookie") };
    },
  }),
  heads("reason-phrase", SEGMENT, away, {
    answer: ({ response, path }) => {
      response.writeHead(200, "Quite Fine", { ...SEGMENT, "content-length": 80_000 }).end(bodyOf(path));
    },
  }),
  heads("empty-reason-phrase", SEGMENT, away, {
    answer: ({ response, path }) => {
      response.statusMessage = " ";
      response.writeHead(200, { ...SEGMENT, "content-length": 80_000 }).end(bodyOf(path));
    },
  }),
  // The proxies ask for uncompressed answers. The lengths differ, so the host stays direct.
  heads("compressed", SEGMENT, away, {
    proof: "compared",
    answer: ({ response, path, request }) => {
      const body = bodyOf(path);
      const isZipped = /gzip/.test(String(request.headers["accept-encoding"]));
      const sent = isZipped ? gzipSync(body) : body;
      const headers = { ...SEGMENT, vary: "accept-encoding", ...(isZipped ? { "content-encoding": "gzip" } : {}) };
      response.writeHead(200, { ...headers, "content-length": sent.length }).end(sent);
    },
  }),
  heads("range", { ...SEGMENT, "access-control-expose-headers": "Content-Range, Content-Length" }, away, {
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/h`, { headers: { range: "bytes=0-59999" } });
      const ask = (range: string) => tab.fetch(`${tab.away}/h/1.ts`, { headers: { range } });
      return { first: await ask("bytes=0-59999"), rest: await ask("bytes=60000-"), past: await ask("bytes=90000-") };
    },
  }),
  heads("range-of-own-host", { "content-type": "video/mp2t" }, home, {
    run: async (tab) => {
      await tab.leadInto(`${tab.home}/h`, { headers: { range: "bytes=0-59999" } });
      return tab.fetch(`${tab.home}/h/1.ts`, { headers: { range: "bytes=10000-79999" } });
    },
  }),
  reads("blob", "return see.digestOf(await (await (await fetch(url)).blob()).arrayBuffer())"),
  reads("blob-type", "const blob = await (await fetch(url)).blob(); return [blob.type, blob.size];", {
    ...OPEN_CORS,
    "content-type": "Video/MP2T; x=Y",
  }),
  reads(
    "immutable-headers",
    `const answer = await fetch(url);
     return [await failing(() => answer.headers.set("x-a", "1")), await failing(() => answer.headers.delete("x-a")),
       Object.prototype.toString.call(answer), answer instanceof Response, Object.keys(answer)];`,
  ),
  reads(
    "clone-and-used",
    `const answer = await fetch(url);
     const other = answer.clone();
     const used = [answer.bodyUsed, other.url === answer.url, other.type, other.redirected, other.status];
     const digests = [await see.digestOf(await answer.arrayBuffer()), await see.digestOf(await other.arrayBuffer())];
     const again = await failing(() => answer.arrayBuffer());
     return { used, digests, again, late: await failing(() => answer.clone()) };`,
  ),
  reads(
    "stream",
    `const answer = await fetch(url);
     const reader = answer.body.getReader();
     const parts = [];
     for (let part = await reader.read(); !part.done; part = await reader.read()) parts.push(part.value);
     return { locked: answer.body.locked, kinds: [...new Set(parts.map((part) => part.constructor.name))],
       body: await see.digestOf(await new Blob(parts).arrayBuffer()) };`,
  ),
  reads(
    "cache-api",
    `const cache = await caches.open("shelf");
     const answer = await fetch(url);
     await cache.put(url, answer);
     const kept = await cache.match(url);
     return { ...see.headOf(kept), body: await see.digestOf(await kept.arrayBuffer()) };`,
  ),
  reads(
    "cache-api-add",
    `const cache = await caches.open("shelf");
     await cache.add(url);
     const kept = await cache.match(url);
     return { ...see.headOf(kept), body: await see.digestOf(await kept.arrayBuffer()) };`,
    SEGMENT,
    { proof: "led" },
  ),
  reads(
    "request-object",
    `const request = new Request(url, { headers: { accept: "video/mp2t" }, cache: "no-store" });
     const answer = await fetch(request);
     return { ...see.headOf(answer), body: await see.digestOf(await answer.arrayBuffer()) };`,
  ),
  reads(
    "aborted",
    `const before = await failing(() => fetch(url, { signal: AbortSignal.abort() }));
     const reason = await failing(() => fetch(url, { signal: AbortSignal.abort(new RangeError("mine")) }));
     const control = new AbortController();
     const answer = await fetch(url, { signal: control.signal });
     control.abort();
     const after = await failing(async () => (await answer.arrayBuffer()).byteLength);
     return { before, reason, after: typeof after };`,
  ),
  reads(
    "same-names",
    `const found = [fetch.name, fetch.length, String(fetch).includes("[native code]"), XMLHttpRequest.name,
       String(XMLHttpRequest).includes("[native code]"), XMLHttpRequest.length];
     await fetch(url);
     return found;`,
  ),
];
