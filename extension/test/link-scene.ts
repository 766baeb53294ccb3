/** A page's link to the transport with a port, a clock and a carrier of its own, for tests. */
import { Calls, type CallListener } from "../src/carry/calls";
import { Link } from "../src/page/link";
import type { Carrier } from "../src/shared/carry";
import type { PortLike, ToPage, ToTransport } from "../src/shared/messages";

/** A clock whose timers run when a test advances it. */
export class Clock {
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

export class Port implements PortLike<ToTransport> {
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

export const FORBIDDEN = "http://forbidden.example/1.mp4";

export function make() {
  const clock = new Clock();
  const calls = { summon: 0, connected: 0, isThere: true };
  const link = new Link({
    summon: () => void calls.summon++,
    connected: () => void calls.connected++,
    isThere: () => calls.isThere,
    permits: {
      allows: (url) => url !== FORBIDDEN,
      willAllow: async (url) => url !== FORBIDDEN,
      targets: ["https://cdn.example"],
      phraseOf: () => undefined,
    },
  });
  const carried = new Calls(link, { nowMs: () => clock.nowMs, setTimeout: clock.set, clearTimeout: clock.clear });
  const carrier = { handle: (message) => carried.handle(message), lost: () => carried.lost() } as Carrier;
  return { clock, calls, link, carried, carrier };
}

export function makeReady() {
  const made = make();
  made.link.equip(made.carrier);
  expect(made.link.carrier).toBeNull();
  const port = new Port();
  made.link.attach(port);
  port.receive({ type: "hello" });
  expect(made.link.carrier).toBe(made.carrier);
  return { ...made, port };
}

/** A listener that keeps what it hears. */
export function listener(): CallListener & { heard: string[] } {
  const heard: string[] = [];
  return { heard, message: ({ type }) => heard.push(type), lost: () => heard.push("lost"), tick: () => undefined };
}
