/**
 * Main: Origo as a process. It reads its environment variables (below), prints one JSON line when it is ready, then
 * logs JSON lines, and closes on SIGTERM or SIGINT.
 */
import { join } from "node:path";
import { z } from "zod";
import { parseOrigins } from "@tributary/contract";
import { shown } from "@tributary/contract/fault";
import { doubtfulValues, misspeltVariables, oddValue } from "@tributary/contract/environment";
import { startOrigo } from "./server";
import { makeLog } from "./telemetry";

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/;

const oneOf = <T extends string>(...values: [T, ...T[]]) =>
  z.enum(values, { message: `must be one of ${values.join(", ")}` });

const Variables = z.object({
  PORT: z
    .string()
    .default("0")
    .refine((value) => /^\d{1,5}$/.test(value) && Number(value) <= 65_535, "must be a port, 0 to 65535")
    .transform(Number),
  HOST: z.string().min(1).default("127.0.0.1"),
  DATA_DIR: z.string({ required_error: "is missing: set it to the folder for Origo's data" }).min(1),
  ENROLMENT_CODE_FILE: z.string().min(1).optional(),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, "must begin with postgres:// or postgresql://: Origo knows no other database server")
    .refine((value) => URL.canParse(value), "must be a URL: write special characters of the password as in %40")
    .optional(),
  REDIS_URL: z
    .string()
    .regex(/^rediss?:\/\//, "must begin with redis:// or rediss://")
    .refine((value) => URL.canParse(value), "must be a URL: write special characters of the password as in %40")
    .optional(),
  RETENTION_DAYS: z
    .string()
    .regex(/^[1-9]\d{0,4}$/, "must be a whole number of days, 1 to 99999")
    .transform(Number)
    .optional(),
  LOGIN: oneOf("required", "off").default("required"),
  GEO_DB: z.string().min(1).optional(),
  ALLOW_ORIGINS: z
    .string()
    .default("")
    .transform((value) => parseOrigins(value))
    .refine((origins) => origins !== undefined, "must be origins of pages, as in https://player.example, with commas"),
  TRUSTED_HOPS: z.string().regex(/^\d$/, "must be 0 to 9").transform(Number).default("0"),
  LOG_LEVEL: oneOf("silent", "error", "warn", "info", "debug").default("info"),
});

const Environment = Variables.refine(
  ({ REDIS_URL, DATABASE_URL }) => REDIS_URL === undefined || DATABASE_URL !== undefined,
  { path: ["REDIS_URL"], message: "is only for several Origos over one database: set DATABASE_URL too" },
).refine(({ LOGIN, HOST }) => LOGIN === "required" || LOOPBACK.test(HOST), {
  path: ["LOGIN"],
  message: "may be off only when HOST is a loopback address: without login, everyone who reaches the port is an admin",
});

async function main(): Promise<void> {
  // The data folder holds keys, password hashes and records: nobody else on this machine may read what Origo writes.
  process.umask(0o077);
  // Docker Compose passes variables that are not set as empty ones.
  const set = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ""));
  const names = Object.keys(Variables.shape);
  const warnings = [...misspeltVariables(set, names, ["ORIGO_"]), ...doubtfulValues(set, names)];
  const odd = oddValue(set, names);
  if (odd) refuse(odd.name, odd.fault, set[odd.name], warnings);
  const environment = Environment.safeParse(set);
  if (!environment.success) {
    const [issue] = environment.error.issues;
    const name = String(issue?.path[0]);
    return refuse(name, issue?.message ?? "is wrong", set[name], warnings);
  }
  const env = environment.data;
  const log = makeLog(env.LOG_LEVEL);
  for (const message of warnings) log.warn({ event: "environment", message });
  const origo = await startOrigo({
    port: env.PORT,
    host: env.HOST,
    dataDir: env.DATA_DIR,
    codeFile: env.ENROLMENT_CODE_FILE,
    databaseUrl: env.DATABASE_URL,
    redisUrl: env.REDIS_URL,
    retentionDays: env.RETENTION_DAYS,
    login: env.LOGIN,
    geoFile: env.GEO_DB,
    trustedHops: env.TRUSTED_HOPS,
    pageOrigins: env.ALLOW_ORIGINS ?? [],
    log,
    dashboardDir: join(__dirname, "dashboard"),
  });
  const stop = (signal: NodeJS.Signals): void => {
    log.info({ event: "stopping", signal });
    void origo.close().then(
      () => process.exit(0),
      (error: Error) => fail(error),
    );
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  console.log(JSON.stringify({ ready: true, url: origo.url }));
  if (origo.setupPath !== undefined) {
    // This is printed at every LOG_LEVEL, since nobody can sign in without this link.
    console.log(
      JSON.stringify({
        event: "setup",
        message: "there are no users yet: this link creates the first admin, and works once",
        url: origo.url.replace("//0.0.0.0", "//127.0.0.1") + origo.setupPath,
      }),
    );
  }
  if (env.LOGIN === "off") log.warn({ event: "loginOff", message: "everyone who reaches this port is an admin" });
}

/** These can hold passwords. */
const SECRET = /_URL$/;

/** A variable that is missing may be misspelt, so the warnings follow the fault. */
function refuse(name: string, fault: string, value: string | undefined, warnings: readonly string[]): never {
  const got = value === undefined || SECRET.test(name) ? "" : `, got ${shown(value)}`;
  for (const line of [`${name} ${fault}${got}`, ...warnings]) console.error(`origo: ${line}`);
  process.exit(2);
}

function fail(error: Error): never {
  console.error(`origo: ${error.message}`);
  process.exit(1);
}

main().catch(fail);
