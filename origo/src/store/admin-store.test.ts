/**
 * Tests AdminStore on a real DuckDB file and on a real PostgreSQL. Decisions at the same time have the same result as
 * decisions one after another.
 */
import { DATABASES, stopDatabases, type TestDatabase } from "../../test/databases";
import { Configuration } from "../configuration";
import { AdminStore } from "./admin-store";
import type { Store } from "./store";

const TIMES = Array.from({ length: 20 }, (_, index) => index);
afterAll(stopDatabases);
jest.setTimeout(60_000);

describe.each(DATABASES)("what is decided at once over %s", (_name, make) => {
  let place: TestDatabase;
  let store: Store;
  let admin: AdminStore;

  beforeEach(async () => {
    place = await make();
    store = await place.open();
    admin = new AdminStore(store.database);
  });
  afterEach(async () => {
    await store.close();
    await place.remove();
  });

  const add = (name: string, onlyFirst = false): Promise<boolean> =>
    admin.addUser({ name, password: "p", role: "admin" }, 1, onlyFirst);
  const trues = (answers: readonly boolean[]): number => answers.filter(Boolean).length;

  test("a secret is created once", async () => {
    const secrets = await Promise.all(TIMES.map((index) => admin.secret("key", () => `made by ${index}`)));
    expect(new Set(secrets).size).toBe(1);
  });

  test("there is only one first user, and only one user with a name", async () => {
    expect(trues(await Promise.all(TIMES.map((index) => add(`admin ${index}`, true))))).toBe(1);
    expect(trues(await Promise.all(TIMES.map(() => add("somebody"))))).toBe(1);
    expect(await admin.users()).toHaveLength(2);
  });

  test("the last admin cannot be removed", async () => {
    await Promise.all(TIMES.map((index) => add(`admin ${index}`)));
    expect(trues(await Promise.all(TIMES.map((index) => admin.deleteUser(`admin ${index}`))))).toBe(TIMES.length - 1);
    expect(await admin.users()).toHaveLength(1);
  });

  test("a version of the configuration is written only once", async () => {
    const version = { version: 1, author: "a", reason: "r", atMs: 1, values: {} };
    expect(trues(await Promise.all(TIMES.map(() => admin.addConfigVersion(version))))).toBe(1);
  });

  test("a proxy has one state, which is one of those that were set", async () => {
    await Promise.all(
      TIMES.map((index) => admin.decide("proxy", { state: "draining", name: `name ${index}`, isConvicted: false })),
    );
    expect(await admin.proxyStates()).toEqual([
      { id: "proxy", state: "draining", name: expect.stringMatching(/^name \d+$/), isConvicted: false },
    ]);
  });

  test("only one of two overlapping experiments can be started, also at two Origos at the same time", async () => {
    const origos = [new Configuration(admin, () => 1), new Configuration(admin, () => 1)] as const;
    const arms = [
      { name: "a", weight: 1, values: { "client.windowPackets": 60 } },
      { name: "b", weight: 1, values: { "client.windowPackets": 600 } },
    ];
    const drafts = await Promise.all(
      TIMES.map((index) => origos[0].addExperiment("ada", { name: `experiment ${index}`, question: "", arms })),
    );
    const started = await Promise.allSettled(
      drafts.map(({ id }, index) => origos[index % 2 === 0 ? 0 : 1].moveExperiment(id, "running")),
    );
    expect(started.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(started.find(({ status }) => status === "rejected")).toMatchObject({
      reason: { error: { kind: "experimentsOverlap" } },
    });
    expect((await admin.experiments()).filter(({ state }) => state === "running")).toHaveLength(1);
  });
});
