import type { ProxyInfo } from "./api";
import { Directory } from "./directory";
import type { Platform } from "./platform";
import { SETTINGS_DEFAULT } from "./settings";

function build(names: string[], configured: () => Promise<void> = () => Promise.resolve()) {
  const state = {
    names,
    nowMs: 0,
    asked: 0,
    dead: false,
    port: 80,
    network: undefined as string | undefined,
    token: undefined as string | undefined,
  };
  const platform = {
    now: () => state.nowMs,
    fetch: () => {
      state.asked++;
      if (state.dead) return Promise.reject(new TypeError("fetch failed"));
      return Promise.resolve(
        Response.json({
          proxies: state.names.map((name): ProxyInfo => ({ id: name, name, url: `http://${name}:${state.port}` })),
          network: state.network,
          token: state.token && `${state.token}${state.asked}`,
        }),
      );
    },
  } as unknown as Platform;
  const directory = new Directory(
    "http://origo",
    platform,
    SETTINGS_DEFAULT,
    { refresh: configured },
    "0b8f5a0e-6a1e-4c4e-8b0f-0123456789ab",
  );
  const pick = async (count: number, host?: string): Promise<string> => {
    const picked = await directory.pick(count, host);
    return "rejection" in picked ? picked.rejection.message : picked.proxies.map(({ id }) => id).join("");
  };
  return { state, directory, pick };
}

describe("directory", () => {
  test("directory: asks Origo once in ten seconds, and no download waits for a later request", async () => {
    const { state, pick } = build(["a", "b", "c"]);
    expect(await pick(2)).toBe("ab");
    state.nowMs = 10_000;
    expect(await pick(2)).toBe("ab");
    expect(state.asked).toBe(1);
    state.nowMs = 10_001;
    expect(await pick(2)).toBe("ab");
    expect(state.asked).toBe(2);
  });

  test("directory: asks for the next token while a long download goes on", async () => {
    const { state, directory, pick } = build(["a"]);
    state.token = "token";
    await pick(1);
    state.nowMs = 10_000;
    expect([directory.freshToken(), state.asked]).toEqual(["token1", 1]);
    state.nowMs = 10_001;
    expect([directory.freshToken(), directory.freshToken(), state.asked]).toEqual(["token1", "token1", 2]);
    await directory.refresh();
    expect(directory.freshToken()).toBe("token2");
  });

  test("directory: a refused token is renewed at once, at most once a second", async () => {
    const { state, directory, pick } = build(["a"]);
    state.token = "token";
    await pick(1);
    state.nowMs = 1_000;
    directory.renewToken();
    expect(state.asked).toBe(1);
    state.nowMs = 1_001;
    directory.renewToken();
    directory.renewToken();
    await directory.refresh();
    expect([directory.freshToken(), state.asked]).toEqual(["token2", 2]);
    directory.renewToken();
    expect(state.asked).toBe(2);
  });

  test("directory: is ready only when both the list and the configuration are known", async () => {
    let tell = (): void => undefined;
    const { directory } = build(["a"], () => new Promise((resolve) => (tell = resolve)));
    const [first, order] = [directory.ready(), [] as string[]];
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(directory.list).toHaveLength(1);
    const second = directory.ready().then(() => order.push("ready"));
    await new Promise((resolve) => setTimeout(resolve, 5));
    order.push("configured");
    tell();
    await Promise.all([first, second]);
    expect(order).toEqual(["configured", "ready"]);
  });

  test("directory: keeps the same proxies when the order of the list changes", async () => {
    const { state, pick } = build(["a", "b", "c"]);
    await pick(2);
    state.names = ["c", "b", "a"];
    state.nowMs = 10_001;
    await pick(2);
    expect(await pick(2)).toBe("ab");
    expect(await pick(3)).toBe("abc");
  });

  test("directory: replaces a proxy that failed, and uses it again after its penalty", async () => {
    const { state, directory, pick } = build(["a", "b", "c"]);
    await pick(2);
    directory.penalise("a");
    expect(await pick(2)).toBe("bc");
    expect(await pick(3)).toBe("bc");
    state.nowMs = 10_000;
    expect(await pick(3)).toBe("bca");
  });

  test("directory: a proxy that failed over one host is replaced for that host only", async () => {
    const { state, directory, pick } = build(["a", "b", "c"]);
    await pick(2);
    directory.penalise("a", "one.example");
    expect([await pick(2, "one.example"), await pick(2, "two.example"), await pick(2)]).toEqual(["bc", "ab", "ab"]);
    directory.penalise("b", "one.example");
    directory.penalise("c", "one.example");
    expect(await pick(2, "one.example")).toMatch(/rests for this host/);
    state.nowMs = 10_000;
    expect(await pick(2, "one.example")).toBe("ab");
  });

  test("directory: drops a proxy that Origo removes from its list", async () => {
    const { state, directory, pick } = build(["a", "b", "c"]);
    await pick(2);
    state.names = ["b", "c"];
    await directory.refresh();
    expect(await pick(2)).toBe("bc");
  });

  test("directory: uses the latest address of a chosen proxy, and keeps it if a full list omits it", async () => {
    const { state, directory, pick } = build(["a", "b", ...Array.from({ length: 30 }, (_, index) => `p${index}`)]);
    await pick(2);
    state.port = 81;
    state.names = ["b", "c", ...state.names.slice(2)];
    await directory.refresh();
    expect(await directory.pick(2)).toMatchObject({
      proxies: [
        { id: "a", url: "http://a:80" },
        { id: "b", url: "http://b:81" },
      ],
    });
  });

  test("directory: keeps using the known proxies when Origo dies", async () => {
    const { state, pick } = build(["a", "b"]);
    await pick(2);
    state.dead = true;
    state.nowMs = 60_000;
    expect(await pick(2)).toBe("ab");
  });

  test("directory: says why it has no proxy", async () => {
    const { state, pick } = build([]);
    expect(await pick(2)).toBe("Origo knows no live proxy that works");
    state.names = ["a"];
    expect(await pick(2)).toBe("a");
    const dead = build([]);
    dead.state.dead = true;
    expect(await dead.pick(1)).toBe("Origo at http://origo cannot be reached: fetch failed");
  });

  test("directory: takes the network's name from Origo, and keeps the last one if Origo gives none", async () => {
    const { state, directory } = build(["a"]);
    const seen: string[] = [directory.network];
    for (const network of ["198.51.100.0/24", undefined, "203.0.113.0/24"]) {
      state.network = network;
      await directory.refresh();
      seen.push(directory.network);
    }
    expect(seen).toEqual(["", "198.51.100.0/24", "198.51.100.0/24", "203.0.113.0/24"]);
  });

  test("directory: ignores entries that are not proxies", async () => {
    const { directory, pick } = build(["a"]);
    const platform = {
      now: () => 0,
      fetch: () =>
        Promise.resolve(Response.json({ proxies: [null, 3, { id: "x" }, { id: "y", name: "y", url: "ftp://y" }] })),
    };
    const odd = new Directory(
      "http://origo",
      platform as unknown as Platform,
      SETTINGS_DEFAULT,
      { refresh: () => Promise.resolve() },
      "0b8f5a0e-6a1e-4c4e-8b0f-0123456789ab",
    );
    expect(await odd.pick(1)).toHaveProperty("rejection");
    expect(await pick(1)).toBe("a");
    expect(directory.list).toHaveLength(1);
  });
});
