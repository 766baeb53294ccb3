import { Configuration } from "./configuration";
import type { AdminStore, ConfigVersion } from "./store/admin-store";

/** A store in memory. A query for experiments is answered when its gate opens. */
function storeWith(gates: Promise<void>[]) {
  const versions: ConfigVersion[] = [];
  return {
    configVersions: () => Promise.resolve([...versions].reverse().slice(0, 1)),
    experiments: () => (gates.shift() ?? Promise.resolve()).then(() => []),
    addConfigVersion: (version: ConfigVersion) => Promise.resolve(versions.push(version) > 0),
  } as unknown as AdminStore;
}

test("configuration: a reading from before a change does not undo the change and is not announced", async () => {
  let open = (): void => undefined;
  const configuration = new Configuration(storeWith([new Promise((resolve) => (open = resolve))]), () => 0);
  const told: number[] = [];
  configuration.on("change", () => told.push(configuration.version));
  const slow = configuration.refresh();
  await new Promise((resolve) => setTimeout(resolve, 5));
  const changed = configuration.change("ada", {
    baseVersion: 0,
    values: { "client.tracePerMille": 1000 },
    reason: "trace",
  });
  await new Promise((resolve) => setTimeout(resolve, 5));
  open();
  await Promise.all([slow, changed]);
  expect([configuration.version, configuration.value("client.tracePerMille"), told]).toEqual([1, 1000, [1]]);
});

test("configuration: a reading that fails rejects for its caller, and the next one works", async () => {
  const configuration = new Configuration(storeWith([Promise.reject(new Error("the database is gone"))]), () => 0);
  await expect(configuration.refresh()).rejects.toThrow("the database is gone");
  await configuration.change("ada", { baseVersion: 0, values: { "client.tracePerMille": 1000 }, reason: "trace" });
  expect(configuration.version).toBe(1);
});

test("configuration: stored settings and values that the table does not have are left out", async () => {
  const values = { "client.nothing": 1, "origo.selection": "by-moon", "origo.nearKm": 100 };
  const store = storeWith([]);
  await store.addConfigVersion({ version: 1, author: "ada", reason: "old", atMs: 0, values });
  const configuration = new Configuration(store, () => 0);
  await configuration.refresh();
  expect(configuration.describe().values).toEqual({ "origo.nearKm": 100 });
  expect(configuration.origoSettings()).toMatchObject({ nearKm: 100, tokenMinutes: 10 });
});
