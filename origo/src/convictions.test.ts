/** Tests Convictions on a real DuckDB file and on a real PostgreSQL. */
import { DATABASES, stopDatabases, type TestDatabase } from "../test/databases";
import { Convictions } from "./convictions";
import { ConvictionStore } from "./store/conviction-store";
import type { Store } from "./store/store";

const HOUR_MS = 3_600_000;
afterAll(stopDatabases);
jest.setTimeout(60_000);

describe.each(DATABASES)("convictions over %s", (_name, make) => {
  let place: TestDatabase;
  let store: Store;
  let nowMs = 1e12;

  beforeEach(async () => {
    place = await make();
    store = await place.open();
  });
  afterEach(async () => {
    await store.close();
    await place.remove();
  });

  /** As another Origo over the same database has them, or this one after a restart. */
  const open = async (): Promise<Convictions> => {
    const convictions = new Convictions({ store: new ConvictionStore(store.database), key: "k", nowMs: () => nowMs });
    await convictions.refresh();
    return convictions;
  };

  test("several Origos count one network once, and agree", async () => {
    const [here, there] = [await open(), await open()];
    expect(await here.note("p1", "192.0.2.0/24")).toEqual([0, 1]);
    expect(await there.note("p1", "192.0.2.0/24")).toEqual([1, 1]);
    expect(await there.note("p1", "198.51.100.0/24")).toEqual([1, 2]);
    await Promise.all([here.note("p2", "192.0.2.0/24"), there.note("p2", "192.0.2.0/24")]);
    await here.refresh();
    expect([here, there, await open()].map((each) => each.countOf("p1"))).toEqual([2, 2, 2]);
    expect((await open()).countOf("p2")).toBe(1);
    await here.forget("p1");
    expect([here.countOf("p1"), (await open()).countOf("p1"), (await open()).countOf("p2")]).toEqual([0, 0, 1]);
  });

  test("a network counts for a day after its last evidence, and is deleted then", async () => {
    const convictions = await open();
    await convictions.note("p1", "a");
    nowMs += 23 * HOUR_MS;
    await convictions.note("p1", "b");
    nowMs += HOUR_MS;
    await convictions.refresh();
    expect(convictions.countOf("p1")).toBe(1);
    await convictions.drop();
    expect(await store.database.all("SELECT count(*) AS count FROM convictions")).toEqual([{ count: 1 }]);
  });

  test("of one proxy 1,000 networks are kept, the latest ones, and none by its address", async () => {
    const sql = `INSERT INTO convictions SELECT 'evidence', 'p1', n::VARCHAR, ${nowMs} - 2000 + n
      FROM generate_series(1, 1000) AS t(n)`;
    await store.database.run(sql);
    expect(await (await open()).note("p1", "192.0.2.0/24")).toEqual([1000, 1000]);
    const networks = (await store.database.all("SELECT network FROM convictions")).map((row) => row["network"]);
    expect(networks).not.toContain("1");
    expect(networks).not.toContain("192.0.2.0/24");
  });
});
