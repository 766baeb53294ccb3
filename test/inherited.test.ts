/**
 * A page that gives every object, by `Object.prototype`, values and getters for each name that the extension's scripts
 * write. What an object lacks, the scripts must not look up there.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { builtExtensionDir, isByBrowser, openBrowser, startFleet, type BrowserName } from "@tributary/lab-stack";
import { accessLog, eventually } from "./support";

const SEGMENT = "/media/cmaf/segment-1-001.m4s";

/** Names in the scripts, and indices. A promise asks every object for `then`, as the language says. */
function namesIn(browser: BrowserName): string[] {
  const text = ["page", "carry", "plain"].map((script) =>
    readFileSync(path.join(builtExtensionDir(browser), `${script}.js`), "utf8"),
  );
  const names = text.join().match(/[a-z_$][\w$]*/gi) ?? [];
  const indices = Array.from({ length: 12 }, (_, index) => `${index}`);
  return [...new Set([...names, ...indices])].filter((name) => name !== "then" && !(name in Object.prototype));
}

/**
 * Notes in `window.reads` each name that a script of the extension looks up or sets. `window.ask(url)` asks by fetch
 * and by XMLHttpRequest, and `window.answers` has the numbers of bytes.
 */
const INHERIT = `((names) => {
  const { apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
  const { fetch, XMLHttpRequest, Error } = window;
  const { split, includes } = String.prototype;
  const { open, send } = XMLHttpRequest.prototype;
  const { addEventListener } = EventTarget.prototype;
  const { arrayBuffer } = Response.prototype;
  const getterOf = (owner, name) => getOwnPropertyDescriptor(owner, name).get;
  const byteLength = getterOf(ArrayBuffer.prototype, "byteLength");
  const response = getterOf(XMLHttpRequest.prototype, "response");
  const setType = getOwnPropertyDescriptor(XMLHttpRequest.prototype, "responseType").set;
  const stackOf = getOwnPropertyDescriptor(Error.prototype, "stack")?.get;
  const reads = (window.reads = { __proto__: null });
  window.answers = { __proto__: null };

  /** Of the script that called the getter or setter. Firefox does not name a script of the extension. */
  const isOurs = (error) => {
    const lines = apply(split, stackOf ? apply(stackOf, error, []) : error.stack, ["\\n"]);
    const line = lines[stackOf ? 1 : 2] ?? "";
    return apply(includes, line, ["extension://"]) || apply(includes, line, ["<anonymous code>"]);
  };
  for (let at = 0; at < names.length; at++) {
    const name = names[at];
    const note = (how) => {
      if (isOurs(new Error())) reads[how + " " + name] = true;
    };
    defineProperty(Object.prototype, name, {
      __proto__: null,
      configurable: true,
      get() {
        note("get");
        return undefined;
      },
      set(value) {
        note("set");
        defineProperty(this, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
      },
    });
  }
  /** Later every name has a value. */
  window.giveValues = () => {
    for (let at = 0; at < names.length; at++)
      defineProperty(Object.prototype, names[at], { __proto__: null, configurable: true, writable: true, value: "x" });
  };

  window.ask = (url) => {
    const answers = (window.answers = { __proto__: null });
    const read = async () => {
      const answer = await fetch(url + "-fetch");
      const own = getOwnPropertyDescriptor(answer, "arrayBuffer");
      return await apply(own === undefined ? arrayBuffer : own.value, answer, []);
    };
    const note = async () => {
      try { answers.fetch = apply(byteLength, await read(), []); } catch (error) { answers.fetch = error.message; }
    };
    note();
    const xhr = new XMLHttpRequest();
    apply(open, xhr, ["GET", url + "-xhr"]);
    apply(setType, xhr, ["arraybuffer"]);
    apply(addEventListener, xhr, ["load", () => (answers.xhr = apply(byteLength, apply(response, xhr, []), []))]);
    apply(addEventListener, xhr, ["error", () => (answers.xhr = "error")]);
    apply(send, xhr, []);
  };
  window.told = () => answersText(window.answers);
  const answersText = ({ fetch, xhr }) => fetch + " " + xhr;
})`;

test.each<BrowserName>(["firefox", "chromium"])(
  "%s: the scripts look up nothing that all objects of the page inherit, and carry its requests",
  async (name) => {
    const fleet = await startFleet({ proxyCount: 2, ports: "any" });
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 2 };
    const open = await openBrowser({ name, headless: true, defaults });
    try {
      const { length } = await fetch(fleet.sample.url + SEGMENT).then((answer) => answer.bytes());
      const page = await open.newPage();
      await page.goto(fleet.sample.url);
      await page.evaluate(`${INHERIT}(${JSON.stringify(namesIn(name))})`);
      let count = 0;
      /** Asks once more, each time under another address. Tells whether the proxies alone asked for it. */
      const isCarried = async (): Promise<boolean> => {
        const [startedMs, address] = [Date.now(), `${SEGMENT}?n=${count++}`];
        await page.evaluate(`window.ask("${address}")`);
        const told = await eventually(
          () => page.evaluate("window.told()"),
          (text) => !`${text}`.includes("undef"),
          30,
        );
        expect(told).toBe(`${length} ${length}`);
        const asked = (await accessLog(fleet, startedMs)).filter((entry) => entry.path.startsWith(`${address}-`));
        return asked.length > 0 && !asked.some(isByBrowser);
      };
      expect(await eventually(isCarried, Boolean, 40)).toBe(true);
      await page.evaluate(`(() => {
        const video = document.body.appendChild(document.createElement("video"));
        video.muted = true;
        video.src = "/media/progressive.mp4";
        video.play();
        window.isHeldAt = (second) => video.currentTime > second && video.getAttribute("src").startsWith("blob:");
      })()`);
      expect(await eventually(() => page.evaluate("window.isHeldAt(2)"), Boolean, 40)).toBe(true);
      expect(await page.evaluate("Object.keys(window.reads)")).toEqual([]);

      await page.evaluate("window.giveValues()");
      expect(await eventually(isCarried, Boolean, 40)).toBe(true);
      expect(await eventually(() => page.evaluate("window.isHeldAt(6)"), Boolean, 40)).toBe(true);
    } finally {
      await open.close();
      await fleet.stop();
    }
  },
);
