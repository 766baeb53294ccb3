/** The settings that Origo itself reads. They apply at once. */
import { MIB, type SettingRow } from "./row";

export const ORIGO_SETTINGS = {
  "origo.selection": {
    type: "choice",
    default: "random",
    options: ["random", "near", "least-loaded", "operators"],
    group: "Registry",
    help: "How Origo chooses proxies for a client that does not say.",
  },
  "origo.nearKm": {
    type: "integer",
    default: 3000,
    min: 1,
    max: 20_040,
    unit: "km",
    group: "Registry",
    help: "A proxy within this distance of the client counts as near.",
  },
  "origo.tokenMinutes": {
    type: "integer",
    default: 10,
    min: 1,
    max: 1440,
    unit: "min",
    group: "Access",
    help: "How long a client may open sessions with one token.",
  },
  "origo.tokenBytes": {
    type: "integer",
    default: 4 * 1024 * MIB,
    min: MIB,
    max: 2 ** 40,
    unit: "bytes",
    group: "Access",
    help: "The most that one proxy sends on one token.",
  },
  "origo.listsPerAddress": {
    type: "integer",
    default: 200,
    min: 1,
    max: 1_000_000,
    unit: "lists",
    group: "Access",
    help:
      "The most lists of proxies, each with a token, that clients at one address get in ten seconds. " +
      "A client that plays asks every ten seconds.",
  },
  "origo.loginHours": {
    type: "integer",
    default: 12,
    min: 1,
    max: 720,
    unit: "h",
    group: "Login",
    help: "How long a person stays signed in.",
  },
  "origo.loginFailuresPerName": {
    type: "integer",
    default: 10,
    min: 1,
    max: 1000,
    unit: "attempts",
    group: "Login",
    help: "After this many failed attempts under one name, the next attempt has to wait.",
  },
  "origo.loginFailuresPerAddress": {
    type: "integer",
    default: 50,
    min: 1,
    max: 10_000,
    unit: "attempts",
    group: "Login",
    help:
      "After this many failed attempts from one address to sign in, or to enrol a proxy, " +
      "the next attempt has to wait.",
  },
  "origo.loginWindowSec": {
    type: "integer",
    default: 300,
    min: 1,
    max: 86_400,
    unit: "s",
    group: "Login",
    help: "How long a failed attempt to sign in counts.",
  },
  "origo.proxiesMax": {
    type: "integer",
    default: 1024,
    min: 1,
    max: 100_000,
    unit: "proxies",
    group: "Registry",
    help: "The most proxies that may be enrolled, and that one Origo lists at once.",
  },
  "origo.refreshMs": {
    type: "integer",
    default: 5000,
    min: 500,
    max: 60_000,
    unit: "ms",
    group: "Registry",
    help: "How often Origo looks for changes that another Origo made in the same database.",
  },
  "origo.retentionDays": {
    type: "integer",
    default: 0,
    min: 0,
    max: 99_999,
    unit: "days",
    zero: "unset",
    group: "Records",
    help:
      "Records, error reports and traces that are older than this are deleted. " +
      "0 means the value of RETENTION_DAYS. If that is not set, nothing is deleted. " +
      "Nothing is deleted either while the newest record began over 365 days before Origo's clock, which may be wrong.",
  },
  "origo.intakeWaitingMax": {
    type: "integer",
    default: 10_000,
    min: 1,
    max: 1_000_000,
    unit: "records",
    group: "Records",
    help: "The most records that wait to be written. Origo refuses further records for the moment.",
  },
  "origo.intakeBytesPerSecPerAddress": {
    type: "integer",
    default: 256 * 1024,
    min: 1024,
    max: 2 ** 40,
    unit: "bytes/s",
    group: "Records",
    help:
      "How much one address may send as records, error reports and traces, counted decompressed and over 10 s. " +
      "Origo refuses more for the moment, and clients send it later. An IPv6 network of 64 bits counts as one address.",
  },
  /** 5,000 records a second need half of it. */
  "origo.intakeBytesPerSec": {
    type: "integer",
    default: 16 * MIB,
    min: 1024,
    max: 2 ** 40,
    unit: "bytes/s",
    group: "Records",
    help: "The same for all addresses together.",
  },
  "origo.intakeOpenBytesMax": {
    type: "integer",
    default: 32 * MIB,
    min: MIB,
    max: 2 ** 40,
    unit: "bytes",
    group: "Records",
    help:
      "The most memory for bodies that arrive or wait to be stored, counted after decompression. " +
      "One address has at most a quarter of it.",
  },
  "origo.storageBytesMax": {
    type: "integer",
    default: 20 * 1024 * MIB,
    min: 0,
    max: 2 ** 50,
    unit: "bytes",
    zero: "unset",
    group: "Records",
    help:
      "Origo refuses records while its database is larger than this. It deletes nothing by itself, because old " +
      "records must not give way to what a stranger sends. 0 means no bound.",
  },
  /** DuckDB does not survive a full disk. */
  "origo.diskReserveBytes": {
    type: "integer",
    default: 256 * MIB,
    min: 0,
    max: 2 ** 50,
    unit: "bytes",
    group: "Records",
    help: "Origo refuses records while less of the disk is free.",
  },
} as const satisfies Record<`origo.${string}`, SettingRow>;
