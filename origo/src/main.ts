/**
 * Origo as a process: reads PORT, HOST, ORIGO_SECRET and DATA_DIR, prints one JSON line when ready, closes on SIGTERM or SIGINT.
 */
import { join } from "node:path";
import { z } from "zod";
import { startOrigo } from "./server";

const Environment = z.object({
  PORT: z.string().default("0").refine((value) => /^\d{1,5}$/.test(value) && Number(value) <= 65_535, "must be a port, 0 to 65535").transform(Number),
  HOST: z.string().min(1).default("127.0.0.1"),
  ORIGO_SECRET: z.string({ required_error: "is missing: set it to the secret that the proxies are given" })
    .min(1, "must not be empty").max(1024),
  DATA_DIR: z.string({ required_error: "is missing: set it to the folder for origo.duckdb" }).min(1),
});

async function main(): Promise<void> {
  const environment = Environment.safeParse(process.env);
  if (!environment.success) {
    for (const issue of environment.error.issues) console.error(`origo: ${issue.path.join(".")} ${issue.message}`);
    process.exit(2);
  }
  const { PORT: port, HOST: host, ORIGO_SECRET: secret, DATA_DIR: dataDir } = environment.data;
  const origo = await startOrigo({ port, host, secret, dataDir, dashboardDir: join(__dirname, "dashboard") });
  const stop = (): void => void origo.close().then(() => process.exit(0), (error: Error) => fail(error));
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  console.log(JSON.stringify({ ready: true, url: origo.url }));
}

function fail(error: Error): never {
  console.error(`origo: ${error.message}`);
  process.exit(1);
}

main().catch(fail);
