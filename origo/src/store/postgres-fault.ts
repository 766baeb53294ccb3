/** PostgresFault: says why a PostgreSQL server cannot be used, and what to do. It never tells the password. */

const TABLES = "make the user the owner of the database, or grant it all rights on the schema and its tables";
const ADDRESS = "start PostgreSQL there, or correct DATABASE_URL";

/** By the error's code: of the system, or of PostgreSQL ("PostgreSQL Error Codes" in its manual). */
const REMEDIES: Readonly<Record<string, string>> = {
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

/** An error that the server sent, with the place and the remedy. Any other error stays as it is. */
export function postgresFault(error: Error & { code?: unknown }, url: string): Error {
  return "severity" in error ? placed(error, url, REMEDIES[String(error.code)] ?? "check it and DATABASE_URL") : error;
}

/** The same for any error of the first connection. */
export function connectFault(error: Error & { code?: unknown }, url: string): Error {
  const known = REMEDIES[String(error.code)];
  if (known !== undefined) return placed(error, url, known);
  if ("severity" in error) return postgresFault(error, url);
  const needsPassword = error.message.includes("password must be a string");
  return placed(
    error,
    url,
    needsPassword
      ? "the server asks for a password, and DATABASE_URL has none"
      : `no PostgreSQL answers there: ${ADDRESS}`,
  );
}

const placed = ({ message }: Error, url: string, remedy: string): Error =>
  new Error(`${placeOf(url)}: ${remedy} (${message})`);

function placeOf(url: string): string {
  const { username, host, pathname } = new URL(url);
  const user = decodeURIComponent(username);
  const [database, of] = [decodeURIComponent(pathname.slice(1)) || user, user === "" ? "" : ` as user ${user}`];
  return `PostgreSQL at ${host}, database ${database}${of}, cannot be used`;
}
