/** Tests which proxies are live, which ids they keep, and how they are chosen. */
import { Registry, type EnrolledHello } from "./registry";
import { ProxyHello } from "@tributary/contract/schema";
import { helloOf, statusOf } from "../../contract/test/samples";

const T0 = 1_790_000_000_000;

/** A proxy whose id is made of its name. */
const joined = (fields: Partial<ProxyHello> = {}): EnrolledHello => ({
  ...helloOf(fields),
  id: `id-${fields.name ?? "proxy-1"}`,
});

/** A seeded generator of u32. */
function rngOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state ^ (state >>> 16)) >>> 0;
  };
}

function fleetOf(count: number): Registry {
  const registry = new Registry();
  for (let index = 0; index < count; index++) {
    registry.handleHello(`c${index}`, joined({ name: `proxy-${index}`, url: `http://127.0.0.1:${7611 + index}` }), T0);
  }
  return registry;
}

describe("registry", () => {
  test("a proxy is live until just before its second missed heartbeat, and then gone", () => {
    const registry = fleetOf(1);
    expect(registry.fleet(T0 + 3999)).toHaveLength(1);
    expect(registry.fleet(T0 + 4000)).toHaveLength(0);
    expect(registry.pick(4, new Set(), rngOf(1), T0 + 3999)).toHaveLength(1);
    expect(registry.pick(4, new Set(), rngOf(1), T0 + 4000)).toHaveLength(0);
  });

  test("a heartbeat makes a proxy live, also after it was gone", () => {
    const registry = fleetOf(1);
    registry.handleStatus("c0", statusOf(), T0 + 2000);
    expect(registry.fleet(T0 + 5999)).toHaveLength(1);
    expect(registry.fleet(T0 + 6000)).toHaveLength(0);
    registry.handleStatus("c0", statusOf({ uptimeMs: 9000 }), T0 + 7000);
    expect(registry.fleet(T0 + 7000)).toHaveLength(1);
  });

  test("the time that this process stood still does not count as silence of the proxies", () => {
    let stalledMs = 0;
    const registry = new Registry({ heartbeatMs: () => 2000, proxiesMax: () => 9, stalledMs: () => stalledMs });
    stalledMs = 500;
    registry.handleHello("a", joined(), T0);
    stalledMs += 3000;
    expect([6999, 7000].map((ms) => registry.fleet(T0 + ms).length)).toEqual([1, 0]);
    registry.handleStatus("a", statusOf(), T0 + 6000);
    expect([9999, 10_000].map((ms) => registry.fleet(T0 + ms).length)).toEqual([1, 0]);
  });

  test("a proxy is told only where live proxies of its own operator are", () => {
    const registry = new Registry();
    for (const [name, operator] of [
      ["a", "one"],
      ["b", "one"],
      ["c", "two"],
      ["d", "one"],
    ] as const)
      registry.handleHello(name, joined({ name, operator, url: `http://${name}.test` }), T0);
    registry.decide("id-d", { state: "disabled", name: null, isConvicted: false });
    const asked = ["id-a", "id-b", "id-c", "id-d", "id-stranger"];
    expect(registry.peersOf("id-a", asked, T0)).toEqual({ "id-b": "http://b.test" });
    expect(registry.peersOf("id-stranger", asked, T0)).toEqual({});
    expect(registry.peersOf("id-a", asked, T0 + 4000)).toEqual({});
  });

  test("a closed connection removes its proxy at once", () => {
    const registry = fleetOf(2);
    registry.handleClosed("c0");
    expect(registry.fleet(T0).map((proxy) => proxy.name)).toEqual(["proxy-1"]);
  });

  test("a shorter heartbeat does not lose proxies that still report by the old one", () => {
    const rules = { heartbeatMs: 2000 };
    const registry = new Registry({ heartbeatMs: () => rules.heartbeatMs, proxiesMax: () => 1, stalledMs: () => 0 });
    registry.handleHello("a", joined(), T0);
    rules.heartbeatMs = 500;
    expect(registry.fleet(T0 + 3999)).toHaveLength(1);
    expect(registry.fleet(T0 + 4000)).toHaveLength(0);
    expect(registry.connectedIds()).toEqual([joined().id]);
    registry.handleStatus("a", statusOf(), T0 + 4000);
    expect(registry.fleet(T0 + 4999)).toHaveLength(1);
    expect(registry.fleet(T0 + 5000)).toHaveLength(0);
  });

  test("a reconnect with the same name and address keeps the id and replaces the older connection", () => {
    const registry = new Registry();
    const first = registry.handleHello("old", joined(), T0);
    expect(registry.handleHello("new", joined(), T0 + 1000)).toEqual(first);
    registry.handleClosed("old");
    expect(registry.handleStatus("old", statusOf(), T0 + 1000)).toMatchObject({ error: { kind: "helloMissing" } });
    expect(registry.fleet(T0 + 1000)).toHaveLength(1);
  });

  test("a proxy at a new address keeps what was decided about it", () => {
    const registry = new Registry();
    registry.handleHello("old", joined({ url: "http://127.0.0.1:7611" }), T0);
    registry.decide(joined().id, { state: "disabled", name: null, isConvicted: false });
    registry.handleHello("new", joined({ url: "http://127.0.0.1:7612" }), T0);
    expect(registry.fleet(T0).map(({ url, state }) => [url, state])).toEqual([["http://127.0.0.1:7612", "disabled"]]);
  });

  test("a second hello on one connection replaces the first", () => {
    const registry = fleetOf(1);
    registry.handleHello("c0", joined({ name: "renamed" }), T0);
    expect(registry.fleet(T0).map((proxy) => proxy.name)).toEqual(["renamed"]);
  });

  test("a status before the hello is an error", () => {
    expect(new Registry().handleStatus("c0", statusOf(), T0)).toMatchObject({ error: { kind: "helloMissing" } });
  });

  test("the limit of proxies holds: one more is refused, but a reconnect is not", () => {
    const registry = fleetOf(1024);
    expect(registry.fleet(T0)).toHaveLength(1024);
    const refused = registry.handleHello("more", joined({ name: "one-more" }), T0);
    expect(refused).toMatchObject({ error: { kind: "tooManyProxies", got: 1024 + 1, limit: 1024 } });
    expect(registry.handleHello("again", joined({ name: "proxy-0", url: "http://127.0.0.1:7611" }), T0)).toHaveProperty(
      "id",
    );
  });

  test("rates are counter differences over the proxy's own clock, and unknown across a restart", () => {
    const registry = fleetOf(1);
    const rates = (): unknown[] => registry.fleet(T0).map((proxy) => [proxy.sentBytesPerSec, proxy.originBytesPerSec]);
    registry.handleStatus("c0", statusOf({ sentBytes: 1000, originBytes: 0, uptimeMs: 2000 }), T0);
    expect(rates()).toEqual([[null, null]]);
    registry.handleStatus("c0", statusOf({ sentBytes: 2_001_000, originBytes: 500_000, uptimeMs: 4000 }), T0);
    expect(rates()).toEqual([[1_000_000, 250_000]]);
    registry.handleStatus("c0", statusOf({ sentBytes: 5, originBytes: 5, uptimeMs: 10 }), T0);
    expect(rates()).toEqual([[null, null]]);
  });

  test("a choice has no repeats and no excluded proxies, and is smaller when fewer are live", () => {
    const registry = fleetOf(6);
    for (let seed = 0; seed < 200; seed++) {
      const excluded = new Set([registry.fleet(T0)[seed % 6]?.id ?? ""]);
      const picked = registry.pick(4, excluded, rngOf(seed), T0).map((proxy) => proxy.id);
      expect(new Set(picked).size).toBe(4);
      expect(picked.some((id) => excluded.has(id))).toBe(false);
    }
    expect(registry.pick(7, new Set(), rngOf(1), T0)).toHaveLength(6);
    expect(registry.pick(6, new Set(), () => 0xffffffff, T0)).toHaveLength(6);
  });

  test("each proxy is chosen about equally often (6 proxies, 2 at a time, 6,000 times)", () => {
    const registry = fleetOf(6);
    const rng = rngOf(7);
    const times = new Map<string, number>();
    for (let round = 0; round < 6000; round++) {
      for (const { name } of registry.pick(2, new Set(), rng, T0)) times.set(name, (times.get(name) ?? 0) + 1);
    }
    for (const count of times.values()) expect(Math.abs(count - 2000)).toBeLessThan(200);
    expect(times.size).toBe(6);
  });

  test("the list has the id, the name and the URL of a proxy and nothing else", () => {
    expect(Object.keys(fleetOf(1).pick(1, new Set(), rngOf(1), T0)[0] ?? {})).toEqual(["id", "name", "url"]);
    expect(ProxyHello.safeParse(helloOf()).success).toBe(true);
  });
});
