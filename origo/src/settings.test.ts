/** The settings: what checkValues takes and refuses, and that Origo follows its own settings. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SettingValues } from "@tributary/contract/admin-schema";
import { SETTINGS } from "@tributary/contract/settings";
import { startOrigo, type Origo } from "./server";
import { checkValues } from "./settings";
import { Chart } from "@tributary/contract/query-schema";
import { recordOf } from "../../contract/test/samples";

test("checkValues takes the default and both limits of each setting, and nothing beyond", () => {
  for (const [key, row] of Object.entries(SETTINGS)) {
    const fits = (value: unknown): boolean => "values" in checkValues({ [key]: value as number }, "values");
    expect([key, fits(row.default)]).toEqual([key, true]);
    if (row.type !== "integer") continue;
    const { min, max } = row;
    expect([key, fits(min), fits(max), fits(min - 1), fits(max + 1), fits("1"), fits(min + 0.5)]).toEqual([
      key,
      true,
      true,
      false,
      false,
      false,
      false,
    ]);
  }
});

test.each([
  [{ "client.nothing": 1 }, "values.client.nothing: there is no such setting", {}],
  [{ toString: 1 }, "values.toString: there is no such setting", {}],
  [{ "client.connections": 33 }, "values.client.connections: must be at most 32, got 33", { got: 33, limit: 32 }],
  [{ "client.cutBytes": 1 }, "values.client.cutBytes: must be at least 65,536, got 1", { got: 1, limit: 65_536 }],
  [{ "client.connections": "4" }, 'values.client.connections: must be a whole number, got "4"', {}],
  [{ "client.allowFallback": 1 }, "values.client.allowFallback: must be true or false, got 1", {}],
  [{ "client.mode": "fast" }, /^values\.client\.mode: must be one of direct, parallel-http, .*, got "fast"$/, {}],
] as [SettingValues, string | RegExp, object][])("checkValues refuses %j", (values, message, numbers) => {
  const checked = checkValues(values, "values");
  expect("fault" in checked && checked.fault).toMatchObject(numbers);
  expect("fault" in checked && checked.fault.message).toMatch(message);
});

test("checkValues refuses a setting of the whole client in the arm of an experiment", () => {
  const only = { perDownloadOnly: true };
  expect(checkValues({ "client.stallMs": 900 }, "v", only)).toEqual({ values: { "client.stallMs": 900 } });
  expect(checkValues({ "client.choiceMs": 900 }, "v", only)).toMatchObject({ fault: { field: "v.client.choiceMs" } });
});

describe("a running Origo", () => {
  let origo: Origo;
  let folder: string;
  let version = 0;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "origo-settings-"));
    origo = await startOrigo({ host: "127.0.0.1", port: 0, dataDir: folder, dashboardDir: folder, login: "off" });
  });
  afterAll(async () => {
    await origo.close();
    await rm(folder, { recursive: true });
  });

  async function configure(values: Record<string, number>): Promise<void> {
    const { csrfToken } = (await (await fetch(`${origo.url}/v1/login`)).json()) as { csrfToken: string };
    const response = await fetch(`${origo.url}/v1/config`, {
      method: "PUT",
      headers: { "content-type": "application/json", "x-csrf-token": csrfToken },
      body: JSON.stringify({ baseVersion: version++, values, reason: "test" }),
    });
    expect(response.status).toBe(200);
  }

  const post = (path: string, body: unknown): Promise<Response> =>
    fetch(origo.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });

  test("refuses records beyond `origo.intakeWaitingMax`", async () => {
    await configure({ "origo.intakeWaitingMax": 1 });
    const refused = await post("/v1/records", { records: [recordOf(), recordOf()] });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    await configure({});
    expect((await post("/v1/records", { records: [recordOf(), recordOf()] })).status).toBe(202);
  });

  test("draws a CDF from 200 steps", async () => {
    const answer = await post("/v1/query/chart", { chart: "cdf", metric: "netBytes" });
    const chart = Chart.parse(await answer.json());
    expect(chart.chart === "cdf" ? chart.series[0]?.shares.length : 0).toBe(201);
  });

  test("refuses records while less disk is free than `origo.diskReserveBytes`", async () => {
    await configure({ "origo.diskReserveBytes": 2 ** 50 });
    expect((await post("/v1/records", { records: [recordOf()] })).status).toBe(503);
    await configure({});
  });

  test("shows only records that are younger than `origo.retentionDays`", async () => {
    await configure({ "origo.retentionDays": 1 });
    expect(((await (await fetch(`${origo.url}/v1/records`)).json()) as { records: unknown[] }).records).toHaveLength(2);
  });
});
