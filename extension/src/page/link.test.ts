import type { Carrier } from "../shared/carry";
import type { PortLike, ToPage, ToTransport } from "../shared/messages";
import { Link, type LinkListener } from "./link";

/** A clock whose timers run when a test advances it. */
class Clock {
  nowMs = 0;
  #timers: { atMs: number; callback: () => void }[] = [];
  set = (callback: () => void, ms: number): unknown => {
    const timer = { atMs: this.nowMs + ms, callback };
    this.#timers.push(timer);
    return timer;
  };
  clear = (timer: unknown): void => {
    this.#timers = this.#timers.filter((known) => known !== timer);
  };
  get timerCount(): number {
    return this.#timers.length;
  }
  advance(ms: number): void {
    const untilMs = this.nowMs + ms;
    for (;;) {
      const next = this.#timers.filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined) break;
      this.clear(next);
      this.nowMs = next.atMs;
      next.callback();
    }
    this.nowMs = untilMs;
  }
}

class Port implements PortLike<ToTransport> {
  sent: ToTransport[] = [];
  closed = false;
  onmessage: ((event: MessageEvent) => void) | null = null;
  postMessage(message: ToTransport): void {
    this.sent.push(message);
  }
  close(): void {
    this.closed = true;
  }
  receive(message: ToPage): void {
    this.onmessage?.({ data: message } as MessageEvent);
  }
}

const CARRIER = {} as Carrier;
const FORBIDDEN = "http://forbidden.example/1.mp4";

function make() {
  const clock = new Clock();
  const calls = { summon: 0, connected: 0, isThere: true };
  const link = new Link({
    summon: () => void calls.summon++,
    connected: () => void calls.connected++,
    isThere: () => calls.isThere,
    nowMs: () => clock.nowMs,
    setTimeout: clock.set,
    clearTimeout: clock.clear,
    permits: { allows: (url) => url !== FORBIDDEN, targets: ["https://cdn.example"], phraseOf: () => undefined },
  });
  return { clock, calls, link };
}

async function makeReady() {
  const made = make();
  made.link.equip(CARRIER);
  expect(made.link.carrier).toBeNull();
  const port = new Port();
  made.link.attach(port);
  port.receive({ type: "hello" });
  expect(made.link.carrier).toBe(CARRIER);
  return { ...made, port };
}

function listener(): LinkListener & { heard: string[] } {
  const heard: string[] = [];
  return { heard, message: ({ type }) => heard.push(type), lost: () => heard.push("lost"), tick: () => undefined };
}

describe("link: asks for a port once", () => {
  test("is ready after a hello on the port", async () => {
    const { link, calls } = await makeReady();
    expect([link.state, calls.summon, calls.connected]).toEqual(["ready", 1, 1]);
    expect(link.carrier).toBe(CARRIER);
  });

  test("keeps requests native until the port works", () => {
    const { link, calls } = make();
    link.equip(CARRIER);
    expect([link.carrier, link.carrier, calls.summon]).toEqual([null, null, 1]);
    const port = new Port();
    link.attach(port);
    expect(link.carrier).toBeNull();
    port.receive({ type: "hello" });
    expect([link.state, link.carrier]).toEqual(["ready", CARRIER]);
  });

  test("needs both the port and the carrying script, in any order", async () => {
    for (const isScriptFirst of [true, false]) {
      const { link, calls } = make();
      link.prepare();
      const port = new Port();
      if (isScriptFirst) link.equip(CARRIER);
      link.attach(port);
      port.receive({ type: "hello" });
      expect([link.state, calls.connected]).toEqual([isScriptFirst ? "ready" : "connecting", 1]);
      link.equip(CARRIER);
      expect(link.carrier).toBe(CARRIER);
    }
  });

  test("keeps the carrying script when the port is lost", async () => {
    const { link, clock } = await makeReady();
    link.call({ url: "http://a.example/1.mp4", range: null, patienceMs: 4000 }, listener());
    clock.advance(3000);
    link.prepare();
    const port = new Port();
    link.attach(port);
    port.receive({ type: "hello" });
    expect(link.carrier).toBe(CARRIER);
  });

  test("closes a late port after it was turned off", () => {
    const { link } = make();
    link.prepare();
    link.switch(false);
    const port = new Port();
    link.attach(port);
    expect([link.state, port.closed]).toEqual(["off", true]);
  });

  test("prepare sends nothing, and warm sends one message as soon as the port works", async () => {
    const { link, port, calls } = await makeReady();
    link.prepare();
    expect([calls.summon, port.sent]).toEqual([1, []]);
    link.warm();
    expect(port.sent).toEqual([{ type: "warm" }]);
    const early = make();
    early.link.warm();
    const late = new Port();
    early.link.attach(late);
    expect(late.sent).toEqual([]);
    late.receive({ type: "hello" });
    expect(late.sent).toEqual([{ type: "warm" }]);
  });

  test("closes a second port at once", async () => {
    const { link, port } = await makeReady();
    const second = new Port();
    link.attach(second);
    expect([second.closed, port.closed]).toEqual([true, false]);
  });

  test("starts again after it was switched off and on", async () => {
    const { link, port } = await makeReady();
    link.switch(false);
    expect([link.isNative, port.closed]).toEqual([true, true]);
    link.switch(true);
    expect(link.state).toBe("idle");
  });
});

describe("link: calls and their end", () => {
  test("what the document may not fetch is native, and the transport hears nothing of it", async () => {
    const { link, port } = await makeReady();
    const one = listener();
    link.call({ url: FORBIDDEN, range: null, patienceMs: 4000 }, one);
    await Promise.resolve();
    expect([one.heard, port.sent]).toEqual([["native"], []]);
  });

  test("a message reaches only the call with its id", async () => {
    const { link, port } = await makeReady();
    const [one, two] = [listener(), listener()];
    link.call({ url: "http://a.example/1.mp4", range: null, patienceMs: 4000 }, one);
    link.call({ url: "http://a.example/2.mp4", range: { start: 0, end: 9 }, patienceMs: 4000 }, two);
    port.receive({ type: "end", id: 2 });
    port.receive({ type: "data", id: 1, buffer: new ArrayBuffer(1) });
    port.receive({ type: "data", id: 7, buffer: new ArrayBuffer(1) });
    expect([one.heard, two.heard]).toEqual([["data"], ["end"]]);
  });

  test("an aborted call tells the transport once and hears nothing more", async () => {
    const { link, port } = await makeReady();
    const one = listener();
    const call = link.call({ url: "http://a.example/1.mp4", range: null, patienceMs: 4000 }, one);
    call.abort();
    call.abort();
    call.credit(5);
    port.receive({ type: "end", id: 1 });
    expect(port.sent.map(({ type }) => type)).toEqual(["get", "abort"]);
    expect(one.heard).toEqual([]);
  });

  test("a transport that answers no ping is lost, and its calls hear of it", async () => {
    const { link, clock, port } = await makeReady();
    const one = listener();
    link.call({ url: "http://a.example/1.mp4", range: null, patienceMs: 4000 }, one);
    clock.advance(2000);
    expect(one.heard).toEqual([]);
    clock.advance(500);
    expect([one.heard, port.closed, link.state]).toEqual([["lost"], true, "idle"]);
  });

  test("any message keeps the transport alive", async () => {
    const { link, clock, port } = await makeReady();
    const one = listener();
    link.call({ url: "http://a.example/1.mp4", range: null, patienceMs: 4000 }, one);
    for (let second = 0; second < 20; second++) {
      clock.advance(1000);
      port.receive({ type: "pong", token: 1 });
    }
    expect(one.heard).toEqual([]);
  });

  test("after three losses the page stays native", async () => {
    const { link, clock } = make();
    link.equip(CARRIER);
    for (let loss = 1; loss <= 3; loss++) {
      link.prepare();
      const port = new Port();
      link.attach(port);
      port.receive({ type: "hello" });
      expect(link.carrier).toBe(CARRIER);
      link.call({ url: "http://a.example/1.mp4", range: null, patienceMs: 4000 }, listener());
      clock.advance(3000);
    }
    expect(link.state).toBe("native");
  });

  test("a missing extension is known at the first request, and requests under way end at the next tick", async () => {
    const { link, calls, clock, port } = await makeReady();
    const one = listener();
    link.call({ url: "http://a.example/1.mp4", range: null, patienceMs: 4000 }, one);
    calls.isThere = false;
    clock.advance(500);
    expect([one.heard, port.closed, link.state]).toEqual([["lost"], true, "native"]);

    const later = await makeReady();
    later.calls.isThere = false;
    expect(later.link.carrier).toBeNull();
    expect([later.link.isNative, later.calls.summon]).toEqual([true, 1]);
  });

  test("no timer runs without a request", async () => {
    const { link, clock, port } = await makeReady();
    expect(clock.timerCount).toBe(0);
    link.call({ url: "http://a.example/1.mp4", range: null, patienceMs: 4000 }, listener());
    port.receive({ type: "end", id: 1 });
    clock.advance(1000);
    expect(clock.timerCount).toBe(0);
  });
});
