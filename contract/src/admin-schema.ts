/**
 * What people do with Origo through the dashboard: sign in, manage users, act on proxies, change the configuration,
 * run experiments, save views. Each message has one zod schema, which the page shares.
 * Every change needs the role admin, the login's cookie and its CSRF token in the header `x-csrf-token`.
 */
import { z } from "zod";

export const ADMIN_LIMITS = {
  nameChars: 64,
  passwordChars: 256,
  passwordCharsMin: 10,
  reasonChars: 500,
  arms: 16,
  experiments: 64,
  views: 500,
  viewChars: 8000,
  keyChars: 64,
} as const;

const name = z.string().min(1).max(ADMIN_LIMITS.nameChars);
/** What a person names. Two names that look the same should be the same. */
const newName = name.regex(
  /^(?![\s\p{Cf}])[^\p{Cc}\p{Cs}]*(?<![\s\p{Cf}])$/u,
  "must not have control characters, or spaces at its ends",
);
const password = z.string().min(ADMIN_LIMITS.passwordCharsMin).max(ADMIN_LIMITS.passwordChars);
const reason = z.string().min(1).max(ADMIN_LIMITS.reasonChars);
const epochMs = z.number().finite().nonnegative();
const id = z.string().min(1).max(64);

export const Role = z.enum(["admin", "viewer"]);
export type Role = z.infer<typeof Role>;

/**
 * Answer of GET, POST and DELETE /v1/login. `loginRequired` is false only if Origo runs on a loopback address and was
 * started without login.
 */
export const LoginResponse = z
  .object({
    user: z.object({ name, role: Role }).strict().nullable(),
    csrfToken: z.string(),
    loginRequired: z.boolean(),
  })
  .strict();
export type LoginResponse = z.infer<typeof LoginResponse>;

/** Body of POST /v1/login. */
export const LoginRequest = z.object({ name, password: z.string().min(1).max(ADMIN_LIMITS.passwordChars) }).strict();
/** Body of POST /v1/setup: makes the first admin with the token of the one-time link. */
export const SetupRequest = z.object({ token: z.string().min(1).max(256), name: newName, password }).strict();

export const User = z.object({ name, role: Role, createdAtMs: epochMs, lastLoginMs: epochMs.nullable() }).strict();
export type User = z.infer<typeof User>;
/** Answer of GET /v1/users. */
export const UsersResponse = z.object({ users: z.array(User) }).strict();
/** Body of POST /v1/users. */
export const NewUser = z.object({ name: newName, password, role: Role }).strict();
/** Body of PATCH /v1/users/NAME. DELETE has no body. Origo does not delete the last admin or make it a viewer. */
export const UserChange = z
  .object({ password: password.optional(), role: Role.optional() })
  .strict()
  .refine((change) => change.password !== undefined || change.role !== undefined, "must hold a password or a role");

/**
 * Body of POST /v1/fleet/ID. A draining proxy finishes what it has. Clients are not told of a disabled proxy. Both
 * states survive restarts.
 */
export const FleetAction = z.discriminatedUnion("action", [
  z.object({ action: z.enum(["drain", "disable", "enable", "clear"]) }).strict(),
  z.object({ action: z.literal("rename"), name: newName }).strict(),
]);
export type FleetAction = z.infer<typeof FleetAction>;

/** A proxy that was let in. `author` made its code. `connectedAtMs` is the last time that it connected. */
export const EnrolledProxy = z
  .object({
    id,
    name,
    enrolledAtMs: epochMs,
    author: z.string(),
    connectedAtMs: epochMs,
    revokedAtMs: epochMs.nullable(),
  })
  .strict();
export type EnrolledProxy = z.infer<typeof EnrolledProxy>;
/** Answer of GET /v1/enrolment and of DELETE /v1/enrolment/ID. */
export const EnrolmentResponse = z.object({ proxies: z.array(EnrolledProxy) }).strict();
export type EnrolmentResponse = z.infer<typeof EnrolmentResponse>;
/** Answer of POST /v1/enrolment. */
export const EnrolmentCode = z.object({ code: z.string(), expiresAtMs: epochMs }).strict();
export type EnrolmentCode = z.infer<typeof EnrolmentCode>;

/** One row of the table of settings (settings.ts). Integers have min, max and unit; choices have options. */
export const Setting = z
  .object({
    key: z.string().min(1).max(ADMIN_LIMITS.keyChars),
    type: z.enum(["integer", "boolean", "choice"]),
    scope: z.enum(["client", "proxy", "origo"]),
    group: z.string(),
    help: z.string(),
    unit: z.string().optional(),
    min: z.number().optional(),
    max: z.number().optional(),
    options: z.array(z.string()).optional(),
    default: z.union([z.number(), z.boolean(), z.string()]),
    /** Each download can have a value of its own, so the arms of an experiment may set it. */
    perDownload: z.boolean().optional(),
  })
  .strict();
export type Setting = z.infer<typeof Setting>;

export const SettingValues = z.record(
  z.string().max(ADMIN_LIMITS.keyChars),
  z.union([z.number().finite(), z.boolean(), z.string().max(2000)]),
);
export type SettingValues = z.infer<typeof SettingValues>;

/** Answer of GET /v1/config: every setting with its value now. `values` holds only what differs from the defaults. */
export const ConfigResponse = z
  .object({ version: z.number().int(), settings: z.array(Setting), values: SettingValues })
  .strict();
export type ConfigResponse = z.infer<typeof ConfigResponse>;
/**
 * Body of PUT /v1/config. If `baseVersion` is not the current version, the answer is 409. Origo drops a value that
 * equals its default.
 */
export const ConfigChange = z.object({ baseVersion: z.number().int(), values: SettingValues, reason }).strict();
/** Answer of GET /v1/config/history, newest first. */
export const ConfigHistory = z
  .object({
    versions: z.array(
      z
        .object({
          version: z.number().int(),
          author: z.string(),
          reason: z.string(),
          atMs: epochMs,
          values: SettingValues,
        })
        .strict(),
    ),
  })
  .strict();
export type ConfigHistory = z.infer<typeof ConfigHistory>;

/**
 * A download draws one arm of each running experiment, by weight, and its record says which. The values of an arm are
 * settings of scope client.
 */
export const ExperimentArm = z
  .object({ name: newName, weight: z.number().positive().max(1000), values: SettingValues })
  .strict();
export const NewExperiment = z
  .object({ name: newName, question: z.string().max(1000), arms: z.array(ExperimentArm).min(2).max(ADMIN_LIMITS.arms) })
  .strict();
export const Experiment = NewExperiment.extend({
  id,
  state: z.enum(["draft", "running", "stopped"]),
  createdAtMs: epochMs,
  startedAtMs: epochMs.nullable(),
  stoppedAtMs: epochMs.nullable(),
  author: z.string(),
});
export type Experiment = z.infer<typeof Experiment>;
/** Answer of GET /v1/experiments; POST takes a NewExperiment and makes a draft. */
export const ExperimentsResponse = z.object({ experiments: z.array(Experiment) }).strict();
/** Body of PATCH /v1/experiments/ID. Only a draft can start, and only a running experiment can stop. */
export const ExperimentChange = z.object({ state: z.enum(["running", "stopped"]) }).strict();

/**
 * Answer of GET /v1/client-config, open to any origin: the client settings that differ from the defaults, and the
 * running experiments.
 */
export const ClientConfig = z
  .object({
    version: z.number().int(),
    values: SettingValues,
    experiments: z.array(z.object({ id, arms: z.array(ExperimentArm) }).strict()),
  })
  .strict();
export type ClientConfig = z.infer<typeof ClientConfig>;

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

/** A saved view of a page. The page writes `state` as JSON text. GET and POST /v1/views, DELETE /v1/views/ID. */
export const NewView = z
  .object({
    name: newName,
    page: z.enum(["downloads", "analysis"]),
    state: z.string().max(ADMIN_LIMITS.viewChars).refine(isJson, "must be JSON"),
  })
  .strict();
export const View = NewView.extend({ id, author: z.string(), createdAtMs: epochMs });
export type View = z.infer<typeof View>;
export const ViewsResponse = z.object({ views: z.array(View) }).strict();
