/** A page that replaces the browser's own functions, before its video is carried. */
import { FIREFOX_UUID, openBrowser, startFleet } from "@tributary/lab-stack";
import { untilCarried } from "./support";

/** Replaces getters and functions, and notes every text that they see. */
const REPLACE = `
  window.seen = "";
  const note = (value) => {
    try { if (value instanceof MessageEvent) window.seen += " " + origin.call(value); } catch {}
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
  for (const name of ["type", "target", "currentTarget"]) replaceGetter(Event.prototype, name);
  for (const name of ["stopImmediatePropagation", "preventDefault"]) replaceMethod(Event.prototype, name);
  for (const name of ["test", "exec"]) replaceMethod(RegExp.prototype, name);
  for (const name of ["startsWith", "includes", "indexOf"]) replaceMethod(String.prototype, name);
  replaceMethod(Function.prototype, "call");
  replaceMethod(Promise.prototype, "then");
  replaceMethod(Array.prototype, "push");
  Reflect.apply = (target, self, args) => { note(self); return apply(target, self, args); };
`;

test("Firefox: a page that replaces getters and methods does not learn the installation, and is carried", async () => {
  const fleet = await startFleet({ proxyCount: 2, ports: "any" });
  const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 2 };
  const open = await openBrowser({ name: "firefox", headless: true, defaults });
  try {
    const page = await open.newPage();
    await page.goto(fleet.sample.url);
    await page.evaluate(REPLACE);
    expect(await untilCarried(page, fleet)).toBe(true);
    const seen = (await page.evaluate("window.seen")) as string;
    expect(seen).toContain("segment-1-001");
    expect(seen).not.toContain("-extension:");
    expect(seen).not.toContain(FIREFOX_UUID);
  } finally {
    await open.close();
    await fleet.stop();
  }
});
