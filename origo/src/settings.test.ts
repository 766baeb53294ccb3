/**
 * The settings: how many, that none has a default out of its own range, and that Origo's own reach what they are about.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startOrigo, type Origo } from "./server";
import { checkValues, SETTINGS } from "./settings";
import { Chart } from "@tributary/contract/query-schema";
import { TUNING_DEFAULT } from "./store/index";
import { recordOf } from "../../contract/test/samples";

test("there are over sixty, each with help, of one name each, and each takes its own default and edges and nothing beyond", () => {
  expect(SETTINGS.length).toBeGreaterThan(60);
  expect(new Set(SETTINGS.map(({ key }) => key)).size).toBe(SETTINGS.length);
  for (const { key, type, min, max, default: preset, help } of SETTINGS) {
    expect(help.length).toBeGreaterThan(10);
    const fits = (value: unknown): boolean => "values" in checkValues({ [key]: value as number }, "values");
    expect([key, fits(preset)]).toEqual([key, true]);
    if (type !== "integer") continue;
    expect([key, fits(min), fits(max), fits(min! - 1), fits(max! + 1), fits("1"), fits(min! + 0.5)]).toEqual([
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

test("each of the store's sizes and times is a setting with the same default", () => {
  for (const [name, value] of Object.entries(TUNING_DEFAULT))
    expect(SETTINGS.find(({ key }) => key === `origo.${name}`)?.default).toBe(value);
});

describe("a running Origo", () => {
  let origo: Origo;
  let folder: string;
  let version = 0;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "origo-settings-"));
    origo = await startOrigo({
      host: "127.0.0.1",
      port: 0,
      secret: "s",
      dataDir: folder,
      dashboardDir: folder,
      login: "off",
    });
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

  test("takes no more records at once than it is told to keep waiting", async () => {
    await configure({ "origo.intakeWaitingMax": 1 });
    const refused = await post("/v1/records", { records: [recordOf(), recordOf()] });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    await configure({});
    expect((await post("/v1/records", { records: [recordOf(), recordOf()] })).status).toBe(202);
  });

  test("draws a CDF from as many steps as it is told", async () => {
    const steps = async (): Promise<number> => {
      const chart = Chart.parse(await (await post("/v1/query/chart", { chart: "cdf", metric: "netBytes" })).json());
      return chart.chart === "cdf" ? (chart.series[0]?.shares.length ?? 0) : 0;
    };
    await configure({ "origo.chartCdfSteps": 10 });
    expect(await steps()).toBe(11);
    await configure({});
    expect(await steps()).toBe(201);
  });

  test("refuses records while less of the disk is free than it is told to keep", async () => {
    await configure({ "origo.diskReserveBytes": 2 ** 50 });
    expect((await post("/v1/records", { records: [recordOf()] })).status).toBe(503);
    await configure({});
  });

  test("shows only what is younger than it is told to keep records", async () => {
    await configure({ "origo.retentionDays": 1 });
    expect(((await (await fetch(`${origo.url}/v1/records`)).json()) as { records: unknown[] }).records).toHaveLength(2);
  });
});
