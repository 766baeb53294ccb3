import { FORBIDDEN, listener, makeReady } from "../../test/link-scene";

describe("calls: requests on a port", () => {
  test("what the document may not fetch is native, and the transport hears nothing of it", async () => {
    const { carried, port } = makeReady();
    const one = listener();
    carried.call({ url: FORBIDDEN, range: null, patienceMs: 4000 }, one);
    await Promise.resolve();
    expect([one.heard, port.sent]).toEqual([["native"], []]);
  });

  test("a message reaches only the call with its id", () => {
    const { carried, port } = makeReady();
    const [one, two] = [listener(), listener()];
    carried.call({ url: "http://a.example/1.mp4", range: null, patienceMs: 4000 }, one);
    carried.call({ url: "http://a.example/2.mp4", range: { start: 0, end: 9 }, patienceMs: 4000 }, two);
    port.receive({ type: "end", id: 2 });
    port.receive({ type: "data", id: 1, buffer: new ArrayBuffer(1) });
    port.receive({ type: "data", id: 7, buffer: new ArrayBuffer(1) });
    expect([one.heard, two.heard]).toEqual([["data"], ["end"]]);
  });

  test("an aborted call tells the transport once and hears nothing more", () => {
    const { carried, port } = makeReady();
    const one = listener();
    const call = carried.call({ url: "http://a.example/1.mp4", range: null, patienceMs: 4000 }, one);
    call.abort();
    call.abort();
    call.credit(5);
    port.receive({ type: "end", id: 1 });
    expect(port.sent.map(({ type }) => type)).toEqual(["get", "abort"]);
    expect(one.heard).toEqual([]);
  });

  test("a transport that answers no ping is lost, and its calls hear of it", () => {
    const { carried, clock, link, port } = makeReady();
    const one = listener();
    carried.call({ url: "http://a.example/1.mp4", range: null, patienceMs: 4000 }, one);
    clock.advance(2000);
    expect(one.heard).toEqual([]);
    clock.advance(500);
    expect([one.heard, port.closed, link.state]).toEqual([["lost"], true, "idle"]);
  });

  test("any message keeps the transport alive", () => {
    const { carried, clock, port } = makeReady();
    const one = listener();
    carried.call({ url: "http://a.example/1.mp4", range: null, patienceMs: 4000 }, one);
    for (let second = 0; second < 20; second++) {
      clock.advance(1000);
      port.receive({ type: "pong", token: 1 });
    }
    expect(one.heard).toEqual([]);
  });

  test("no timer runs without a request", () => {
    const { carried, clock, port } = makeReady();
    expect(clock.timerCount).toBe(0);
    carried.call({ url: "http://a.example/1.mp4", range: null, patienceMs: 4000 }, listener());
    port.receive({ type: "end", id: 1 });
    clock.advance(1000);
    expect(clock.timerCount).toBe(0);
  });
});
