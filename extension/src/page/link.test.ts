import { FORBIDDEN, listener, make, makeReady, Port } from "../../test/link-scene";

describe("link: asks for a port once", () => {
  test("is ready after a hello on the port", () => {
    const { link, calls, carrier } = makeReady();
    expect([link.state, calls.summon, calls.connected]).toEqual(["ready", 1, 1]);
    expect(link.carrier).toBe(carrier);
  });

  test("keeps requests native until the port works", () => {
    const { link, calls, carrier } = make();
    link.equip(carrier);
    expect([link.carrier, link.carrier, calls.summon]).toEqual([null, null, 1]);
    const port = new Port();
    link.attach(port);
    expect(link.carrier).toBeNull();
    port.receive({ type: "hello" });
    expect([link.state, link.carrier]).toEqual(["ready", carrier]);
  });

  test("needs both the port and the carrying script, in any order", () => {
    for (const isScriptFirst of [true, false]) {
      const { link, calls, carrier } = make();
      link.prepare();
      const port = new Port();
      if (isScriptFirst) link.equip(carrier);
      link.attach(port);
      port.receive({ type: "hello" });
      expect([link.state, calls.connected]).toEqual([isScriptFirst ? "ready" : "connecting", 1]);
      link.equip(carrier);
      expect(link.carrier).toBe(carrier);
    }
  });

  test("tells who waits the carrier when the link is ready, and null when it is off or native", () => {
    const { link, calls, carrier } = make();
    link.equip(carrier);
    const heard: unknown[] = [];
    const hear = (given: unknown): void => void heard.push(given);
    link.await(hear);
    link.await(hear);
    const port = new Port();
    link.attach(port);
    expect([heard, calls.summon]).toEqual([[], 1]);
    port.receive({ type: "hello" });
    link.await(hear);
    link.switch(false);
    link.await(hear);
    expect(heard).toEqual([carrier, carrier, carrier, null]);
    const early = make();
    early.link.await(hear);
    early.link.switch(false);
    expect(heard.slice(4)).toEqual([null]);
  });

  test("keeps the carrying script when the port is lost", () => {
    const { link, clock, carried, carrier } = makeReady();
    carried.call({ url: "http://a.example/1.mp4", range: null, patienceMs: 4000 }, listener());
    clock.advance(3000);
    link.prepare();
    const port = new Port();
    link.attach(port);
    port.receive({ type: "hello" });
    expect(link.carrier).toBe(carrier);
  });

  test("closes a late port after it was turned off", () => {
    const { link } = make();
    link.prepare();
    link.switch(false);
    const port = new Port();
    link.attach(port);
    expect([link.state, port.closed]).toEqual(["off", true]);
  });

  test("prepare sends nothing; warm asks for no port, and sends one message as soon as there is one", () => {
    const { link, port, calls } = makeReady();
    link.prepare();
    expect([calls.summon, port.sent]).toEqual([1, []]);
    link.warm();
    expect(port.sent).toEqual([{ type: "warm" }]);
    const early = make();
    early.link.warm();
    expect(early.calls.summon).toBe(0);
    early.link.prepare();
    const late = new Port();
    early.link.attach(late);
    expect(late.sent).toEqual([]);
    late.receive({ type: "hello" });
    expect(late.sent).toEqual([{ type: "warm" }]);
  });

  test("closes a second port at once", () => {
    const { link, port } = makeReady();
    const second = new Port();
    link.attach(second);
    expect([second.closed, port.closed]).toEqual([true, false]);
  });

  test("starts again after it was switched off and on", () => {
    const { link, port } = makeReady();
    link.switch(false);
    expect([link.isNative, port.closed]).toEqual([true, true]);
    link.switch(true);
    expect(link.state).toBe("idle");
  });

  test("after three losses the page stays native", () => {
    const { link, clock, carried, carrier } = make();
    link.equip(carrier);
    for (let loss = 1; loss <= 3; loss++) {
      link.prepare();
      const port = new Port();
      link.attach(port);
      port.receive({ type: "hello" });
      expect(link.carrier).toBe(carrier);
      carried.call({ url: "http://a.example/1.mp4", range: null, patienceMs: 4000 }, listener());
      clock.advance(3000);
    }
    expect(link.state).toBe("native");
  });

  test("a missing extension is known at the first request, and requests under way end at the next tick", () => {
    const { link, carried, calls, clock, port } = makeReady();
    const one = listener();
    carried.call({ url: "http://a.example/1.mp4", range: null, patienceMs: 4000 }, one);
    calls.isThere = false;
    clock.advance(500);
    expect([one.heard, port.closed, link.state]).toEqual([["lost"], true, "native"]);

    const later = makeReady();
    later.calls.isThere = false;
    expect(later.link.carrier).toBeNull();
    expect([later.link.isNative, later.calls.summon]).toEqual([true, 1]);
  });

  test("shows a script that passes for the carrying script neither the port nor what may be fetched", () => {
    const { link, port } = makeReady();
    const request = { id: 1, range: null, patienceMs: 4000 };
    expect(link.ask({ ...request, url: FORBIDDEN })).toBe(false);
    link.post({ ...request, type: "get", url: FORBIDDEN, targets: [] } as never);
    link.post({ type: "compare", id: 2, url: FORBIDDEN, range: null, headMs: 1, head: { status: 200 } as never });
    let reads = 0;
    const changing = {
      ...request,
      get url() {
        return reads++ === 0 ? "http://a.example/1.mp4" : FORBIDDEN;
      },
      targets: ["https://evil.example"],
    };
    expect(link.ask(changing)).toBe(true);
    expect(port.sent).toEqual([
      { ...request, type: "get", url: "http://a.example/1.mp4", targets: ["https://cdn.example"] },
    ]);
    const shown = JSON.stringify(Object.values(link));
    expect(shown).toBe("[]");
  });
});
