/** PostgresFault: says why a PostgreSQL server cannot be used, and what to do. It never tells the password. */
import { shown } from "@tributary/contract/fault";

const TABLES = "make the user the owner of the database, or grant it all rights on the schema and its tables";
const CERTIFICATE =
  "its certificate is not known here: add sslrootcert=FILE with its authority to DATABASE_URL, or sslmode=no-verify";
const ADDRESS = "start PostgreSQL there, or correct DATABASE_URL";

/** By the error's code: of the system, or of PostgreSQL ("PostgreSQL Error Codes" in its manual). */
const REMEDIES: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: CERTIFICATE,
  SELF_SIGNED_CERT_IN_CHAIN: CERTIFICATE,
  UNABLE_TO_GET_ISSUER_CERT: CERTIFICATE,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: CERTIFICATE,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: CERTIFICATE,
  CERT_HAS_EXPIRED: "its certificate has expired: renew it there",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate has another name: use that name as the host in DATABASE_URL",
  ECONNREFUSED: `nothing listens there: ${ADDRESS}`,
  ENOTFOUND: "the host is not known: correct DATABASE_URL",
  EAI_AGAIN: "the host's address cannot be looked up: check the name server, or correct DATABASE_URL",
  "28P01": "the password is wrong for this user: correct the user or the password in DATABASE_URL",
  "28000": "the server does not let this user in: correct the user in DATABASE_URL, or create it and allow it there",
  "3D000": "create the database, or correct its name in DATABASE_URL",
  "42501": TABLES,
  "25006": "the database is read-only: give the address of the primary server, or let the user write",
  "53100": "the server's disk is full: free some space there",
  "53300": "the server takes no more connections: raise its limit, or stop other users of it",
  "57P03": "the server is starting or stopping: start Origo again when it runs",
};

/** By the driver's words, where an error has no code of its own. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/password must be a string/, "the server asks for a password, and DATABASE_URL has none"],
  [/requires specifying a CA/, "add sslrootcert=FILE with the authority of its certificate to DATABASE_URL"],
  [/does not support SSL/, "it has no TLS: turn TLS on there, or remove sslmode from DATABASE_URL"],
  [/, open '/, "a file that DATABASE_URL names cannot be read: correct its path or its rights"],
  [/PEM|ASN1|asn1/, "a file that DATABASE_URL names is no certificate or key: correct its path"],
];

const MODES = ["disable", "prefer", "require", "verify-ca", "verify-full", "no-verify"];

/**
 * The address for the driver. It takes some modes of TLS for verify-full and warns at length that a later version will
 * not, so they get that name here. Throws if the mode does not exist, since the driver would pass over it.
 */
export function driverAddress(url: string): string {
  const asked = new URL(url).searchParams;
  const mode = asked.get("sslmode");
  if (mode !== null && !MODES.includes(mode))
    throw new Error(`DATABASE_URL: sslmode must be one of ${MODES.join(", ")}, got ${shown(mode)}`);
  if (asked.has("uselibpqcompat")) return url;
  return url.replace(/([?&]sslmode=)(prefer|require|verify-ca)(?![^&#])/, "$1verify-full");
}

/** An error that the server sent, with the place and the remedy. Any other error stays as it is. */
export function postgresFault(error: Error & { code?: unknown }, url: string): Error {
  return "severity" in error ? placed(error, url, REMEDIES[String(error.code)] ?? "check it and DATABASE_URL") : error;
}

/** The same for any error of the first connection. */
export function connectFault(error: Error & { code?: unknown }, url: string): Error {
  const known = REMEDIES[String(error.code)] ?? WORDS.find(([words]) => words.test(error.message))?.[1];
  if (known !== undefined) return placed(error, url, known);
  return "severity" in error
    ? postgresFault(error, url)
    : placed(error, url, `no PostgreSQL answers there: ${ADDRESS}`);
}

const placed = ({ message }: Error, url: string, remedy: string): Error =>
  new Error(`${placeOf(url)}: ${remedy} (${message})`);

function placeOf(url: string): string {
  const { username, host: listed, pathname, searchParams } = new URL(url);
  const host = listed || (searchParams.get("host") ?? "localhost");
  const user = decodeURIComponent(username);
  const [database, of] = [decodeURIComponent(pathname.slice(1)) || user, user === "" ? "" : ` as user ${user}`];
  return `PostgreSQL at ${host}, database ${database}${of}, cannot be used`;
}
