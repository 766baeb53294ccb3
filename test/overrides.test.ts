/** A page that replaces the browser's own functions, before its video is carried. */
import { FIREFOX_UUID, openBrowser, startFleet, type BrowserName } from "@tributary/lab-stack";
import { untilCarried } from "./support";

/** Replaces getters and functions, and notes every text that they see. */
const REPLACE = `
  window.seen = "";
  window.ports = { all: [], push(text) { this.all[this.all.length] = text; } };
  const note = (value) => {
    try { if (value instanceof MessageEvent) window.seen += " " + origin.call(value); } catch {}
    const isPort = value instanceof MessagePort || value instanceof MessageEvent;
    try { if (isPort) window.ports.push(String(value)); } catch {}
    try { if (typeof value.attach === "function") window.ports.push("a link"); } catch {}
    if (typeof value === "string") window.seen += " " + value;
  };
  const { get: origin } = Object.getOwnPropertyDescriptor(MessageEvent.prototype, "origin");
  const { apply } = Reflect;
  const replaceMethod = (owner, name) => {
    const { value, ...rest } = Object.getOwnPropertyDescriptor(owner, name);
    Object.defineProperty(owner, name, { ...rest, value(...args) {
      note(this); for (let at = 0; at < args.length; at++) note(args[at]);
      return apply(value, this, args);
    } });
  };
  const replaceGetter = (owner, name) => {
    const { get, ...rest } = Object.getOwnPropertyDescriptor(owner, name);
    Object.defineProperty(owner, name, { ...rest, get() { note(this); return apply(get, this, []); } });
  };
  for (const name of ["origin", "data", "ports", "source"]) replaceGetter(MessageEvent.prototype, name);
  for (const name of ["postMessage", "start", "close"]) replaceMethod(MessagePort.prototype, name);
  for (const name of ["addEventListener", "dispatchEvent"]) replaceMethod(EventTarget.prototype, name);
  for (const owner of [Map, WeakMap]) for (const name of ["get", "set", "has"]) replaceMethod(owner.prototype, name);
  for (const name of ["add", "has", "delete"]) replaceMethod(Set.prototype, name);
  for (const name of ["map", "filter", "some", "includes", "join"]) replaceMethod(Array.prototype, name);
  for (const name of ["postMessage"]) replaceMethod(window, name);
  const onmessage = Object.getOwnPropertyDescriptor(MessagePort.prototype, "onmessage");
  Object.defineProperty(MessagePort.prototype, "onmessage", { ...onmessage, set(value) {
    note(this); apply(onmessage.set, this, [value]);
  } });
  for (const name of ["type", "target", "currentTarget"]) replaceGetter(Event.prototype, name);
  for (const name of ["stopImmediatePropagation", "preventDefault"]) replaceMethod(Event.prototype, name);
  for (const name of ["test", "exec"]) replaceMethod(RegExp.prototype, name);
  for (const name of ["startsWith", "includes", "indexOf"]) replaceMethod(String.prototype, name);
  replaceMethod(Function.prototype, "call");
  replaceMethod(Promise.prototype, "then");
  replaceMethod(Array.prototype, "push");
  Reflect.apply = (target, self, args) => { note(self); return apply(target, self, args); };
`;

/** Passes for the carrying script, and replaces what the page script gives it. */
const PASS_FOR_CARRIER = `
  const spy = (owner) => {
    for (const name of Object.getOwnPropertyNames(owner)) {
      const { value } = Object.getOwnPropertyDescriptor(owner, name);
      if (typeof value !== "function" || name === "constructor") continue;
      try {
        Object.defineProperty(owner, name, { value(...args) {
          note(this); for (let at = 0; at < args.length; at++) note(args[at]);
          return apply(value, this, args);
        } });
      } catch {}
    }
  };
  const detail = (link, natives) => {
    for (const owner of [natives, link, Object.getPrototypeOf(link)]) spy(owner);
    return null;
  };
  document.dispatchEvent(new CustomEvent("tributary-carry-ready", { detail }));
`;

test.each<BrowserName>(["firefox", "chromium"])(
  "%s: a page that replaces getters and methods gets neither the installation nor a port, and is carried",
  async (name) => {
    const fleet = await startFleet({ proxyCount: 2, ports: "any" });
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 2 };
    const open = await openBrowser({ name, headless: true, defaults });
    try {
      const page = await open.newPage();
      await page.goto(fleet.sample.url);
      await page.evaluate(REPLACE + PASS_FOR_CARRIER);
      expect(await untilCarried(page, fleet)).toBe(true);
      const seen = (await page.evaluate("window.seen")) as string;
      expect(seen).toContain("segment-1-001");
      expect(seen).not.toContain("-extension:");
      expect(seen).not.toContain(FIREFOX_UUID);
      expect(await page.evaluate("window.ports.all")).toEqual([]);
    } finally {
      await open.close();
      await fleet.stop();
    }
  },
);
