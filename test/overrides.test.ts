/**
 * A page that replaces the browser's own functions, before its video is carried and after that. It must learn nothing,
 * and its requests must be answered also if all of these functions throw.
 */
import { FIREFOX_UUID, openBrowser, startFleet, type BrowserName, type Fleet } from "@tributary/lab-stack";
import type { Page } from "puppeteer-core";
import { eventually, untilCarried } from "./support";

const SEGMENT = "/media/cmaf/segment-1-001.m4s";

/**
 * Replaces every function and getter of all global objects and their prototypes. Each replacement notes what it meets,
 * and throws while `window.thrower` is "all" or its object. Then `window.ask(url)` asks by fetch and by
 * XMLHttpRequest, as the page script left them. `window.answers` has the checksums.
 */
const REPLACE = `(() => {
  const { apply, construct, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
  const { fetch, TypeError, XMLHttpRequest, Uint8Array } = window;
  const { open, send } = XMLHttpRequest.prototype;
  const { addEventListener } = EventTarget.prototype;
  const { arrayBuffer } = Response.prototype;
  const { toString } = Object.prototype;
  const { slice } = String.prototype;
  const getterOf = (owner, name) => getOwnPropertyDescriptor(owner, name).get;
  const setType = getOwnPropertyDescriptor(XMLHttpRequest.prototype, "responseType").set;
  const response = getterOf(XMLHttpRequest.prototype, "response");
  const origin = getterOf(MessageEvent.prototype, "origin");

  /** Each text that was met, and how many ports and links. */
  const met = (window.met = { texts: { __proto__: null }, ports: 0 });
  const noteText = (text) => (met.texts[apply(slice, text, [0, 500])] = true);
  const note = (value, depth = 0) => {
    if (typeof value === "string") noteText(value);
    if (value === null || typeof value !== "object" || value === window) return;
    const kind = apply(toString, value, []);
    if (kind === "[object MessageEvent]") noteText(apply(origin, value, []));
    if (kind === "[object MessagePort]" || typeof value.attach === "function") met.ports += 1;
    if (depth === 2 || (kind !== "[object Object]" && kind !== "[object Array]")) return;
    const names = ownKeys(value);
    for (let at = 0; at < names.length; at++) note(getOwnPropertyDescriptor(value, names[at]).value, depth + 1);
  };
  let isNoting = false;
  const replacing = (original, owner) =>
    function (...args) {
      if (isNoting) return apply(original, this, args);
      isNoting = true;
      try {
        note(this);
        note(args);
      } catch {}
      isNoting = false;
      const { thrower } = window;
      if (thrower === "all" || thrower === owner) throw new TypeError("the page throws in " + original.name);
      return new.target === undefined ? apply(original, this, args) : construct(original, args, new.target);
    };
  const replaceAll = (owner) => {
    const names = ownKeys(owner);
    for (let at = 0; at < names.length; at++) {
      const name = names[at];
      const found = getOwnPropertyDescriptor(owner, name);
      // \`await\` itself reads a promise's constructor.
      if (name === "constructor" || !found.configurable) continue;
      for (const kind of ["value", "get", "set"]) {
        const isClass = kind === "value" && typeof found.value === "function" && "prototype" in found.value;
        if (typeof found[kind] === "function" && !isClass) found[kind] = replacing(found[kind], owner);
      }
      try { defineProperty(owner, name, found); } catch {}
    }
  };
  const owners = [];
  const globals = ownKeys(window);
  for (let at = 0; at < globals.length; at++) {
    const { value } = getOwnPropertyDescriptor(window, globals[at]);
    const isObject = apply(toString, value, []) !== "[object Window]" && typeof value === "object" && value !== null;
    if (typeof value === "function" && value.prototype) owners[owners.length] = value.prototype;
    if (typeof value === "function" || isObject) owners[owners.length] = value;
  }
  const iterators = [[].values(), new Map().keys(), new Set().keys(), ""[Symbol.iterator](), "".matchAll(/x/g)];
  const others = [(function* () {})(), (async function* () {})(), new Uint8Array(), async () => {}];
  const hidden = [...iterators, ...others];
  for (let at = 0; at < hidden.length; at++)
    for (let of = getPrototypeOf(hidden[at]); of !== null && of !== Object.prototype; of = getPrototypeOf(of))
      owners[owners.length] = of;

  const byteLength = getterOf(ArrayBuffer.prototype, "byteLength");
  const answered = (body, how) => {
    const bytes = new Uint8Array(body);
    let sum = 0;
    for (let at = 0; at < apply(byteLength, body, []); at++) sum = (31 * sum + bytes[at]) >>> 0;
    window.answers[how] = sum;
  };
  replaceAll(window);
  for (let at = 0; at < owners.length; at++) replaceAll(owners[at]);
  window.ask = (url) => {
    window.answers = {};
    const read = async () => {
      const answer = await fetch(url + "-fetch");
      const own = getOwnPropertyDescriptor(answer, "arrayBuffer");
      return await apply(own === undefined ? arrayBuffer : own.value, answer, []);
    };
    const note = async () => {
      try { answered(await read(), "fetch"); } catch (error) { window.answers.fetch = error.message; }
    };
    note();
    const xhr = new XMLHttpRequest();
    apply(open, xhr, ["GET", url + "-xhr"]);
    apply(setType, xhr, ["arraybuffer"]);
    apply(addEventListener, xhr, ["load", () => answered(apply(response, xhr, []), "xhr")]);
    apply(addEventListener, xhr, ["error", () => (window.answers.xhr = "error")]);
    apply(send, xhr, []);
  };
})();`;

/** Passes for the later scripts, and replaces what the page script gives them. */
const PASS_FOR_CARRIER = `(() => {
  window.spiedCount = 0;
  const { defineProperty, getPrototypeOf, ownKeys } = Reflect;
  const spy = (owner) => {
    const names = ownKeys(owner);
    for (let at = 0; at < names.length; at++)
      defineProperty(owner, names[at], { value: () => void (window.spiedCount += 1) });
  };
  const detail = (link, natives) => {
    spy(natives);
    spy(link);
    spy(getPrototypeOf(link));
    return null;
  };
  document.dispatchEvent(new CustomEvent("tby-carry", { detail }));
  const spyOn = (kept) => {
    for (const each of Object.values(kept)) {
      for (const members of [each?.own ?? {}, each?.members ?? {}]) {
        for (const name of ownKeys(members)) spy(members[name]);
        spy(members);
      }
      if (each) spy(each);
    }
    spy(kept);
  };
  document.dispatchEvent(new CustomEvent("tby-kept", { detail: spyOn }));
})();`;

/** What a request needs, in the page script and the carrying script. */
const THROWERS = [
  ...["Math", "Response"],
  ...["Promise", "URL", "Headers", "Map", "Set", "Uint8Array", "ReadableStream", "ReadableByteStreamController"].map(
    (name) => `${name}.prototype`,
  ),
  ...["AbortSignal", "AbortController", "PerformanceObserver", "XMLHttpRequest"].map((name) => `${name}.prototype`),
];

/** What no page may learn. */
const secretsOf = (fleet: Fleet): string[] => [
  FIREFOX_UUID,
  "-extension:",
  ...[fleet.origo, ...fleet.proxies].map(({ url }) => new URL(url).host),
];

/** Signatures are longer than any name in the sample. */
const TOKEN = /[\w-]{80}/;

async function expectNothingLearned(page: Page, fleet: Fleet): Promise<void> {
  const texts = (await page.evaluate("Object.keys(window.met.texts)")) as string[];
  expect(texts.length).toBeGreaterThan(0);
  expect(texts.filter((text) => TOKEN.test(text) || secretsOf(fleet).some((secret) => text.includes(secret)))).toEqual(
    [],
  );
  expect(await page.evaluate("window.met.ports")).toBe(0);
}

/** Asks for the segment, while every function of the page throws, or those of one object. */
async function answersOf(page: Page, name: string, thrower = '"all"'): Promise<string> {
  await page.evaluate(`window.thrower = ${thrower}; window.ask("${SEGMENT}?n=${name}");`);
  const read = () => page.evaluate('window.answers.fetch + " " + window.answers.xhr') as Promise<string>;
  const answers = await eventually(read, (text) => !text.includes("undefined"), 60);
  await page.evaluate("window.thrower = undefined;");
  return answers;
}

function checksumOf(bytes: Uint8Array): number {
  let sum = 0;
  for (const byte of bytes) sum = (31 * sum + byte) >>> 0;
  return sum;
}

test.each<BrowserName>(["firefox", "chromium"])(
  "%s: a page that replaces functions and getters learns nothing, and is carried",
  async (name) => {
    const fleet = await startFleet({ proxyCount: 2, ports: "any" });
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 2 };
    const open = await openBrowser({ name, headless: true, defaults });
    try {
      const segment = await fetch(fleet.sample.url + SEGMENT).then((answer) => answer.bytes());
      const whole = checksumOf(segment);
      const page = await open.newPage();
      await page.goto(fleet.sample.url);
      await page.evaluate(PASS_FOR_CARRIER + REPLACE);
      expect(await untilCarried(page, fleet)).toBe(true);
      expect(await page.evaluate("window.spiedCount")).toBe(0);
      await expectNothingLearned(page, fleet);
      for (const thrower of THROWERS)
        expect([thrower, await answersOf(page, thrower, thrower)]).toEqual([thrower, `${whole} ${whole}`]);
      expect(await answersOf(page, "carried")).toBe(`${whole} ${whole}`);
      await expectNothingLearned(page, fleet);

      await page.goto(`${fleet.sample.url}/?again`);
      await page.evaluate(REPLACE);
      expect(await answersOf(page, "first")).toBe(`${whole} ${whole}`);
      await expectNothingLearned(page, fleet);
    } finally {
      await open.close();
      await fleet.stop();
    }
  },
);

/**
 * Makes a video before the page replaces its functions, and what plays it and looks at it. Once both later scripts have
 * come, which ask the page script by an event of the page, all functions throw.
 */
const MAKE_VIDEO = `(() => {
  const { apply, getOwnPropertyDescriptor } = Reflect;
  const { prototype } = HTMLMediaElement;
  const { getAttribute } = Element.prototype;
  const { startsWith } = String.prototype;
  const timeOf = getOwnPropertyDescriptor(prototype, "currentTime").get;
  const video = document.body.appendChild(document.createElement("video"));
  video.muted = true;
  const start = (address) => {
    video.src = address;
    video.play();
  };
  let scripts = 0;
  const note = () => {
    scripts += 1;
    if (scripts === 2) window.thrower = "all";
  };
  document.addEventListener("tby-carry", note);
  document.addEventListener("tby-plain", note);
  const isHeldAt = (second) =>
    apply(timeOf, video, []) > second && apply(startsWith, apply(getAttribute, video, ["src"]), ["blob:"]);
  return { start, isHeldAt };
})()`;

test.each<BrowserName>(["firefox", "chromium"])(
  "%s: a plain video is taken over and plays on in such a page, also if all functions throw",
  async (name) => {
    const fleet = await startFleet({ proxyCount: 2, ports: "any" });
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 2 };
    const open = await openBrowser({ name, headless: true, defaults });
    try {
      const page = await open.newPage();
      await page.goto(fleet.sample.url);
      await page.evaluate(`{
        const { start, isHeldAt } = ${MAKE_VIDEO};
        ${REPLACE}
        window.isHeldAt = isHeldAt;
        start("/media/progressive.mp4");
      }`);
      const isHeldAt = (second: number) => eventually(() => page.evaluate(`isHeldAt(${second})`), Boolean, 40);
      expect(await isHeldAt(2)).toBe(true);
      expect(await page.evaluate("window.thrower")).toBe("all");
      await page.evaluate("window.thrower = undefined;");
      expect(await isHeldAt(8)).toBe(true);
      await expectNothingLearned(page, fleet);
    } finally {
      await open.close();
      await fleet.stop();
    }
  },
);
