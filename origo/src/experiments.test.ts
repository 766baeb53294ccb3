/** Tests that the arms of an experiment differ, over a real database. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ExperimentArm, SettingValues } from "@tributary/contract/admin-schema";
import type { z } from "zod";
import { Configuration } from "./configuration";
import { AdminStore } from "./store/admin-store";
import { Store } from "./store/index";

let folder: string;
let store: Store;
let configuration: Configuration;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "origo-experiments-"));
  store = await Store.open(folder);
  configuration = new Configuration(new AdminStore(store.database), () => 0);
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

const arm = (name: string, values: SettingValues): z.infer<typeof ExperimentArm> => ({ name, weight: 1, values });
const draft = (...arms: z.infer<typeof ExperimentArm>[]) =>
  configuration.addExperiment("ada", { name: "x", question: "", arms });

test("experiments: two arms with the same values are refused, in any order of the values", async () => {
  const values = { "client.mode": "coded", "client.connections": 4 };
  const turned = { "client.connections": 4, "client.mode": "coded" };
  const message = "arms[2].values: the arms a and c have the same values: change one of them";
  await expect(draft(arm("a", values), arm("b", {}), arm("c", turned))).rejects.toThrow(message);
});

test("experiments: arms that are the same under the configuration of now do not start", async () => {
  const { id } = await draft(arm("as it is", {}), arm("default", { "client.mode": "coded" }));
  const start = () => configuration.moveExperiment(id, "running");
  await expect(start()).rejects.toThrow("the arms as it is and default have the same values");
  await configuration.change("ada", { baseVersion: 0, values: { "client.mode": "split-http" }, reason: "test" });
  expect(await start()).toMatchObject({ state: "running" });
});
