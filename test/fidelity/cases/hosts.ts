/** Hosts that choose by the request: what strangers get is not what the page gets. */
import { bodies, bodyOf, give, pause, refuse, SEGMENT, type Exchange, type FidelityCase, type Tab } from "../kit";

const SEGMENTS = 8;

/** Asks for a row of segments of the host, as a player does. */
const stream =
  (baseOf: (tab: Tab) => string = ({ away }) => away, init: object = {}, leads = false) =>
  async (tab: Tab): Promise<unknown> => {
    if (leads) await tab.leadIn(baseOf(tab));
    const got = [];
    for (let at = 0; at < SEGMENTS; at++) got.push(await tab.fetch(`${baseOf(tab)}/v/segment-${at}.ts`, init));
    return bodies(got);
  };

type Chooser = (exchange: Exchange) => boolean;

/** A placeholder with status 200 for those whom `isFriend` does not know. */
const placeholder =
  (isFriend: Chooser): FidelityCase["answer"] =>
  (exchange) =>
    give(exchange, isFriend(exchange) ? bodyOf(exchange.path) : bodyOf("placeholder"), SEGMENT);

const hotlink = ({ request, hosts }: Exchange): boolean => (request.headers.referer ?? "").startsWith(hosts.home);

const CASES: FidelityCase[] = [
  { name: "hosts/referer", answer: placeholder(hotlink), run: stream() },
  { name: "hosts/referer-later", answer: placeholder(hotlink), run: stream(undefined, {}, true) },
  {
    name: "hosts/referer-403",
    answer: (exchange) => (hotlink(exchange) ? give(exchange, bodyOf(exchange.path)) : refuse(exchange, 403)),
    run: stream(),
  },
  {
    name: "hosts/referer-403-without-cors",
    answer: (exchange) =>
      hotlink(exchange) ? give(exchange, bodyOf(exchange.path)) : void exchange.response.writeHead(403).end(),
    run: stream(undefined, {}, true),
  },
  {
    name: "hosts/referer-other-length",
    answer: (exchange) =>
      give(exchange, hotlink(exchange) ? bodyOf(exchange.path) : bodyOf("placeholder", 40_000), SEGMENT),
    run: stream(undefined, {}, true),
  },
  {
    name: "hosts/referer-redirect",
    answer: (exchange) => {
      if (exchange.path === "/teaser.ts") return give(exchange, bodyOf("teaser"));
      if (hotlink(exchange)) return give(exchange, bodyOf(exchange.path));
      exchange.response.writeHead(302, { ...SEGMENT, location: "/teaser.ts" }).end();
    },
    run: stream(undefined, {}, true),
  },
  {
    name: "hosts/cookie",
    pageHeaders: () => ({ "set-cookie": "seat=1; Path=/" }),
    answer: placeholder(({ request }) => /seat=1/.test(request.headers.cookie ?? "")),
    run: stream(({ home }) => home),
  },
  {
    name: "hosts/cookie-set-in-play",
    answer: placeholder(({ request }) => /later=1/.test(request.headers.cookie ?? "")),
    run: async (tab) => {
      const before = await stream(({ home }) => home)(tab);
      await tab.run("document.cookie = 'later=1; Path=/'");
      return { before, after: await stream(({ home }) => `${home}/b`)(tab) };
    },
  },
  {
    name: "hosts/user-agent",
    answer: placeholder(({ request }) => /Mozilla\/5\.0 .*Chrome\//.test(request.headers["user-agent"] ?? "")),
    run: stream(),
  },
  {
    name: "hosts/user-agent-403-later",
    answer: (exchange) =>
      /Mozilla\//.test(exchange.request.headers["user-agent"] ?? "")
        ? give(exchange, bodyOf(exchange.path))
        : refuse(exchange, 403),
    run: stream(undefined, {}, true),
  },
  {
    name: "hosts/language",
    answer: placeholder(({ request }) => /^en/.test(request.headers["accept-language"] ?? "")),
    run: stream(),
  },
  {
    name: "hosts/language-with-vary",
    answer: (exchange) => {
      const language = /^en/.test(exchange.request.headers["accept-language"] ?? "") ? "en" : "any";
      const headers = { ...SEGMENT, vary: "Accept-Language", "content-language": language };
      give(exchange, bodyOf(`${exchange.path} in ${language}`), headers);
    },
    run: stream(undefined, {}, true),
  },
  {
    name: "hosts/accept",
    answer: (exchange) =>
      give(exchange, bodyOf(`${exchange.path} as ${exchange.request.headers.accept}`), { ...SEGMENT, vary: "Accept" }),
    run: stream(undefined, { headers: { accept: "video/webm" } }),
  },
  {
    name: "hosts/accept-by-xhr",
    answer: (exchange) => give(exchange, bodyOf(`${exchange.path} as ${exchange.request.headers.accept}`), SEGMENT),
    run: async (tab) => {
      const got = [];
      for (let at = 0; at < SEGMENTS; at++)
        got.push(await tab.xhr(`${tab.away}/v/segment-${at}.ts`, { headers: { accept: "video/webm" } }));
      return bodies(got);
    },
  },
  {
    name: "hosts/origin",
    // The proxies name the page's origin as the browser does.
    proof: "carried",
    answer: placeholder(({ request, hosts }) => request.headers.origin === hosts.home),
    run: stream(),
  },
  {
    name: "hosts/sec-fetch",
    answer: placeholder(({ request }) => request.headers["sec-fetch-mode"] === "cors"),
    run: stream(),
  },
  {
    name: "hosts/first-in-time",
    // The first to ask gets the segment. The next ones get another mix, as with advertisements by session.
    answer: (exchange) => {
      const count = (exchange.memory[exchange.path] = (exchange.memory[exchange.path] ?? 0) + 1);
      give(exchange, bodyOf(count === 1 ? exchange.path : `second of ${exchange.path}`), SEGMENT);
    },
    run: stream(),
  },
  {
    name: "hosts/turns-later",
    proof: "carried",
    // Strangers get the same for two seconds and the placeholder then.
    answer: (exchange) => {
      exchange.memory["sinceMs"] ??= Date.now();
      const isEarly = Date.now() - exchange.memory["sinceMs"] < 2000;
      give(exchange, isEarly || hotlink(exchange) ? bodyOf(exchange.path) : bodyOf("placeholder"), SEGMENT);
    },
    run: async (tab) => {
      await stream(undefined, {}, true)(tab);
      await pause(2200);
      return stream(({ away }) => `${away}/then`)(tab);
    },
  },
];

/** The proxies ask for a file of each host. What they get decides whether the page gets more through them. */
export const CHOOSING_HOSTS = CASES.map((each): FidelityCase => ({ proof: "compared", ...each }));
