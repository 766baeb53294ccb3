import type { ClientConfig } from "@tributary/contract/admin-schema";
import { CLIENT_SETTINGS, nameOf } from "@tributary/contract/settings";
import { LIMITS } from "@tributary/protocol";
import type { Platform } from "./platform";
import { RemoteConfig } from "./remote-config";
import { SETTINGS_DEFAULT } from "./settings";

const ARMS = [
  { name: "small", weight: 1, values: { "client.windowPackets": 60 } },
  { name: "large", weight: 3, values: { "client.windowPackets": 600, "client.stallMs": 900 } },
];
const NONE = new Set<string>();

async function configWith(answer: unknown, status = 200): Promise<RemoteConfig> {
  const platform = {
    fetch: () => Promise.resolve(new Response(JSON.stringify(answer), { status })),
  } as unknown as Platform;
  const config = new RemoteConfig("http://origo.test", platform, { directoryTimeoutMs: 1000 });
  await config.refresh();
  return config;
}

const config = (fields: Partial<ClientConfig>): ClientConfig => ({
  version: 3,
  values: {},
  experiments: [],
  ...fields,
});

test("remote config: values become options and settings; unknown keys and zeros are left out", async () => {
  const values = {
    "client.mode": "split-http",
    "client.generationSize": 0,
    "client.windowPackets": 99,
    "client.stallMs": 700,
    "client.idleCloseMs": 800,
    "client.nothing": 1,
  };
  const remote = await configWith(config({ values }));
  expect(remote.draw("c", "d", NONE)).toEqual({
    options: { mode: "split-http", windowPackets: 99 },
    settings: { stallMs: 700, idleCloseMs: 800 },
    configVersion: 3,
    experiments: [],
  });
  expect(remote.clientSettings).toEqual({ stallMs: 700, idleCloseMs: 800 });
});

test("remote config: arms are drawn by weight, and the same ids draw the same (4,000 downloads, 1 : 3)", async () => {
  const remote = await configWith(config({ experiments: [{ id: "e", arms: ARMS }] }));
  let small = 0;
  for (let download = 0; download < 4000; download++) {
    const drawn = remote.draw("client", `download ${download}`, NONE);
    const arm = drawn.experiments[0]?.arm;
    expect(drawn.options.windowPackets).toBe(arm === "small" ? 60 : 600);
    expect(remote.draw("client", `download ${download}`, NONE)).toEqual(drawn);
    if (arm === "small") small++;
  }
  expect(Math.abs(small - 1000)).toBeLessThan(120);
});

test("remote config: two experiments draw independently of each other (4,000 downloads)", async () => {
  const experiments = ["e1", "e2"].map((id) => ({
    id,
    arms: ["a", "b"].map((name) => ({ name, weight: 1, values: {} })),
  }));
  const remote = await configWith(config({ experiments }));
  const counts = new Map<string, number>();
  for (let download = 0; download < 4000; download++) {
    const key = remote
      .draw("client", String(download), NONE)
      .experiments.map(({ arm }) => arm)
      .join("");
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  for (const key of ["aa", "ab", "ba", "bb"]) expect(Math.abs((counts.get(key) ?? 0) - 1000)).toBeLessThan(150);
});

test("remote config: a caller that sets an option or setting of an arm does not join the experiment", async () => {
  const remote = await configWith(config({ experiments: [{ id: "e", arms: ARMS }] }));
  for (const given of ["windowPackets", "stallMs"])
    expect(remote.draw("c", "d", new Set([given]))).toMatchObject({ options: {}, experiments: [] });
  expect(remote.draw("c", "d", new Set(["mode"])).experiments).toHaveLength(1);
});

test.each([
  [{}, 404],
  ["x", 200],
  [{ version: 1 }, 200],
  [null, 200],
])("remote config: the answer %j with status %i changes nothing", async (answer, status) => {
  expect((await configWith(answer, status)).draw("c", "d", NONE)).toEqual({
    options: {},
    settings: {},
    configVersion: undefined,
    experiments: [],
  });
});

test("remote config: each client setting of the table reaches the client as an option or a setting", async () => {
  const rows = Object.entries(CLIENT_SETTINGS);
  const values = Object.fromEntries(rows.map(([key, row]) => [key, row.type === "integer" ? row.max : row.default]));
  const { options, settings } = (await configWith(config({ values }))).draw("c", "d", NONE);
  const names = rows.map(([key]) => nameOf(key));
  expect(Object.keys({ ...options, ...settings }).sort()).toEqual(names.sort());
  for (const [key, row] of rows) {
    const name = nameOf(key);
    if (!("option" in row))
      expect([key, SETTINGS_DEFAULT[name as keyof typeof SETTINGS_DEFAULT]]).toEqual([key, row.default]);
  }
  expect(Object.keys(SETTINGS_DEFAULT).filter((name) => !names.includes(name))).toEqual(["chunkBytesMax"]);
});

test("remote config: the limits of the table are within those of the protocol", () => {
  const {
    "client.symbolBytes": symbolBytes,
    "client.generationSize": generationSize,
    "client.windowPackets": windowPackets,
    "client.feedbackEveryPackets": feedbackEveryPackets,
    "client.cutBytes": cutBytes,
    "client.requestsOpenMax": requestsOpenMax,
  } = CLIENT_SETTINGS;
  expect([symbolBytes.min, symbolBytes.max, symbolBytes.default]).toEqual([
    LIMITS.symbolBytesMin,
    LIMITS.symbolBytesMax,
    LIMITS.symbolBytesDefault,
  ]);
  expect(generationSize.max).toBe(LIMITS.generationSizeMax);
  expect([windowPackets.max, feedbackEveryPackets.max]).toEqual([LIMITS.windowPacketsMax, LIMITS.windowPacketsMax]);
  expect(cutBytes.max).toBe(LIMITS.chunkBytesMax);
  expect(requestsOpenMax.max).toBe(LIMITS.requestsPerSessionMax);
});
