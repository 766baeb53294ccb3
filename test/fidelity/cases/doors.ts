/** What a page may not do without the extension, it may not do with it: CORS of every hop, CSP, modes, credentials. */
import type { OutgoingHttpHeaders } from "node:http";
import { bodyOf, give, OPEN_CORS, SEGMENT, type Exchange, type FidelityCase, type Hosts, type Tab } from "../kit";

const MEDIA = { "content-type": "video/mp2t" };

const redirect = ({ response }: Exchange, location: string, headers: OutgoingHttpHeaders = OPEN_CORS, status = 302) =>
  void response.writeHead(status, { ...headers, location }).end();

/** Asks for files of a folder by fetch and by XHR. Those of the same names before them are carried if any is. */
const bothWays =
  (folder: (tab: Tab) => string, init?: object) =>
  async (tab: Tab): Promise<unknown> => {
    await tab.leadInto(folder(tab), init);
    return { fetch: await tab.fetch(`${folder(tab)}/1.ts`, init), xhr: await tab.xhr(`${folder(tab)}/2.ts`) };
  };

/** Asks the page's own host or another one, whose answer is a redirect. */
const hops = (
  name: string,
  answer: FidelityCase["answer"],
  { from = ({ away }: Tab) => `${away}/hop`, init }: { from?: (tab: Tab) => string; init?: object } = {},
): FidelityCase => ({ name: `redirect/${name}`, answer, run: bothWays(from, init) });

/** The first host redirects with `hop` headers, the last one answers with `end` headers. */
const toThird =
  (hop: OutgoingHttpHeaders, end: (exchange: Exchange) => OutgoingHttpHeaders): FidelityCase["answer"] =>
  (exchange) => {
    if (exchange.path.startsWith("/hop/"))
      redirect(exchange, `${exchange.hosts.third}/end${exchange.path.slice(4)}`, hop);
    else give(exchange, bodyOf(exchange.path), { ...MEDIA, ...end(exchange) });
  };

const allow = (origin: string): OutgoingHttpHeaders => ({ "access-control-allow-origin": origin });

export const REDIRECTS: FidelityCase[] = [
  hops("same-host", (exchange) =>
    exchange.path.startsWith("/hop/")
      ? redirect(exchange, `/end${exchange.path.slice(4)}`)
      : give(exchange, bodyOf(exchange.path)),
  ),
  hops(
    "other-host",
    toThird(OPEN_CORS, () => OPEN_CORS),
  ),
  hops(
    "hop-without-cors",
    toThird({}, () => OPEN_CORS),
  ),
  hops(
    "end-without-cors",
    toThird(OPEN_CORS, () => ({})),
  ),
  hops(
    "null-origin-named",
    toThird(OPEN_CORS, ({ hosts }) => allow(hosts.home)),
  ),
  hops(
    "null-origin-allowed",
    toThird(OPEN_CORS, () => allow("null")),
  ),
  hops(
    "null-origin-echoed",
    toThird(OPEN_CORS, ({ request }) => allow(request.headers.origin ?? "none")),
  ),
  hops(
    "from-own-host",
    toThird({}, ({ hosts }) => allow(hosts.home)),
    { from: ({ home }) => `${home}/hop` },
  ),
  hops(
    "from-own-host-without-cors",
    toThird({}, () => ({})),
    { from: ({ home }) => `${home}/hop` },
  ),
  hops("back-home", (exchange) =>
    exchange.host === 1 ? redirect(exchange, `${exchange.hosts.home}/end.ts`) : give(exchange, bodyOf("end"), MEDIA),
  ),
  hops(
    "mode-error",
    toThird(OPEN_CORS, () => OPEN_CORS),
    { init: { redirect: "error" } },
  ),
  hops(
    "mode-manual",
    toThird(OPEN_CORS, () => OPEN_CORS),
    { init: { redirect: "manual" } },
  ),
  hops("long-target", (exchange) =>
    exchange.path.startsWith("/hop/")
      ? redirect(exchange, `/end${exchange.path.slice(4)}?${"x".repeat(3500)}`)
      : give(exchange, bodyOf(exchange.path)),
  ),
  hops("307-and-fragment", (exchange) =>
    exchange.path.startsWith("/hop/")
      ? redirect(exchange, `/end${exchange.path.slice(4)}#part`, OPEN_CORS, 307)
      : give(exchange, bodyOf(exchange.path)),
  ),
  hops("loop", (exchange) => redirect(exchange, exchange.path)),
  hops("to-another-scheme", (exchange) => redirect(exchange, "data:video/mp2t,x")),
  hops("five-hops", (exchange) => {
    const at = Number(exchange.url.searchParams.get("n") ?? 0);
    if (at < 5) redirect(exchange, `${exchange.path}?n=${at + 1}`);
    else give(exchange, bodyOf(exchange.path));
  }),
];

const cors = (name: string, headers: (exchange: Exchange) => OutgoingHttpHeaders, init?: object): FidelityCase => ({
  name: `cors/${name}`,
  answer: (exchange) => {
    if (exchange.request.method === "OPTIONS") return void exchange.response.writeHead(204, headers(exchange)).end();
    give(exchange, bodyOf(exchange.path), { ...MEDIA, ...headers(exchange) });
  },
  run: bothWays(({ away }) => `${away}/c`, init),
});

export const CORS: FidelityCase[] = [
  cors("none", () => ({})),
  cors("named", ({ hosts }) => allow(hosts.home)),
  cors("another-named", ({ hosts }) => allow(hosts.third)),
  cors("echoed", ({ request }) => ({ ...allow(request.headers.origin ?? "none"), vary: "Origin" })),
  cors("only-for-the-page", ({ request, hosts }) => (request.headers.origin === hosts.home ? allow(hosts.home) : {})),
  cors("two-values", ({ hosts }) => allow(`${hosts.home}, ${hosts.third}`)),
  cors("with-credentials-and-star", () => OPEN_CORS, { credentials: "include" }),
  cors("with-credentials", ({ hosts }) => ({ ...allow(hosts.home), "access-control-allow-credentials": "true" }), {
    credentials: "include",
  }),
  cors("mode-no-cors", () => ({}), { mode: "no-cors" }),
  cors("mode-same-origin", () => OPEN_CORS, { mode: "same-origin" }),
  cors("own-header-allowed", () => ({ ...OPEN_CORS, "access-control-allow-headers": "x-own" }), {
    headers: { "x-own": "1" },
  }),
  cors("own-header-refused", () => OPEN_CORS, { headers: { "x-own": "1" } }),
  cors("cross-origin-resource-policy", () => ({ ...OPEN_CORS, "cross-origin-resource-policy": "same-origin" })),
  cors("integrity-wrong", () => OPEN_CORS, { integrity: `sha256-${"A".repeat(43)}=` }),
  cors("head", () => OPEN_CORS, { method: "HEAD" }),
];

const csp = (name: string, policy: (hosts: Hosts) => string, answer?: FidelityCase["answer"]): FidelityCase => ({
  name: `csp/${name}`,
  pageHeaders: (hosts) => ({ "content-security-policy": policy(hosts) }),
  answer: answer ?? ((exchange) => give(exchange, bodyOf(exchange.path))),
  run: bothWays(({ away }) => `${away}/hop`),
});

export const POLICIES: FidelityCase[] = [
  csp("connect-self", () => "connect-src 'self'"),
  csp("connect-none-but-home", ({ home }) => `connect-src ${home}`),
  csp("connect-with-path", ({ home, away }) => `connect-src ${home} ${away}/else/`),
  csp("connect-allowed", ({ home, away }) => `connect-src ${home} ${away}`),
  csp("default-self", () => "default-src 'self'"),
  csp(
    "redirect-out",
    ({ home, away }) => `connect-src ${home} ${away}`,
    toThird(OPEN_CORS, () => OPEN_CORS),
  ),
  {
    name: "csp/meta",
    pageHtml: () => `<!doctype html><meta http-equiv="content-security-policy" content="connect-src 'self'"><body>`,
    answer: (exchange) => give(exchange, bodyOf(exchange.path)),
    run: bothWays(({ away }) => `${away}/hop`),
  },
  {
    name: "csp/report-only",
    pageHeaders: () => ({ "content-security-policy-report-only": "connect-src 'self'" }),
    answer: (exchange) => give(exchange, bodyOf(exchange.path), SEGMENT),
    run: bothWays(({ away }) => `${away}/hop`),
  },
];

/** What a page may read comes through the proxies. */
const CARRIED = new Set(
  `redirect/same-host redirect/other-host redirect/null-origin-allowed redirect/null-origin-echoed
   redirect/from-own-host redirect/307-and-fragment redirect/five-hops cors/named cors/echoed cors/only-for-the-page
   cors/cross-origin-resource-policy csp/connect-allowed`.split(/\s+/),
);

export const DOORS: FidelityCase[] = [...REDIRECTS, ...CORS, ...POLICIES].map((each) =>
  CARRIED.has(each.name) ? { ...each, proof: "carried" } : each,
);
