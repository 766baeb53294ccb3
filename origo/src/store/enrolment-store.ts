/**
 * EnrolmentStore: the public keys of proxies, each bound to one name, and the digests of the one-time codes that let a
 * new key in. enrolment.ts has the rules for who may ask.
 */
import type { ApiErrorKind } from "@tributary/contract/schema";
import type { EnrolledProxy } from "@tributary/contract/admin-schema";
import type { Database, Queries, Row } from "./database";

/** What a proxy shows. `codeDigest` is absent if it shows no code. */
export interface Candidate {
  id: string;
  name: string;
  publicKey: string;
  codeDigest: string | undefined;
}

/** Why a key is not let in. */
export type EnrolmentFault = Extract<
  ApiErrorKind,
  "codeExpired" | "codeMissing" | "codeUsed" | "keyRevoked" | "nameTaken" | "tooManyProxies" | "wrongCode"
>;

type CodeFault = Extract<EnrolmentFault, "codeExpired" | "codeMissing" | "codeUsed" | "wrongCode">;

const COLUMNS = "id, name, enrolled_at_ms, author, connected_at_ms, revoked_at_ms";
/** Stored for a code that does not expire. */
const NEVER_MS = 0;

export class EnrolmentStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async all(): Promise<EnrolledProxy[]> {
    return (await this.#database.all(`SELECT ${COLUMNS} FROM proxy_keys ORDER BY name, id`)).map(enrolledOf);
  }

  async addCode(digest: string, author: string, nowMs: number, expiresAtMs: number | undefined): Promise<void> {
    await this.#database.exclusive(async (inside) => {
      await inside.run("DELETE FROM enrolment_codes WHERE expires_at_ms > 0 AND expires_at_ms <= $1", [nowMs]);
      await inside.run("INSERT INTO enrolment_codes VALUES ($1, $2, $3, NULL)", [
        digest,
        author,
        expiresAtMs ?? NEVER_MS,
      ]);
    });
  }

  async isUnused(digest: string): Promise<boolean> {
    const rows = await this.#database.all(
      "SELECT 1 AS one FROM enrolment_codes WHERE digest = $1 AND used_by IS NULL",
      [digest],
    );
    return rows.length > 0;
  }

  /** Lets a known key in, or a new one with an unused code. Undefined when it is in; then its name is bound to it. */
  enrol(candidate: Candidate, nowMs: number, proxiesMax: number): Promise<EnrolmentFault | undefined> {
    return this.#database.exclusive(async (inside) => {
      const { id, name, publicKey, codeDigest } = candidate;
      const [known] = await inside.all(`SELECT ${COLUMNS} FROM proxy_keys WHERE id = $1`, [id]);
      if (known !== undefined && known["revoked_at_ms"] !== null) return "keyRevoked";
      const code = known === undefined ? await codeOf(inside, codeDigest, nowMs) : undefined;
      if (typeof code === "string") return code;
      if (await isTaken(inside, id, name)) return "nameTaken";
      if (known !== undefined) {
        await inside.run("UPDATE proxy_keys SET name = $2, connected_at_ms = $3 WHERE id = $1", [id, name, nowMs]);
        return undefined;
      }
      const [counted] = await inside.all("SELECT count(*) AS count FROM proxy_keys WHERE revoked_at_ms IS NULL");
      if (Number(counted?.["count"]) >= proxiesMax) return "tooManyProxies";
      await inside.run("INSERT INTO proxy_keys VALUES ($1, $2, $3, $4, $5, $4, NULL, NULL)", [
        id,
        name,
        publicKey,
        nowMs,
        code?.author ?? "",
      ]);
      await inside.run("UPDATE enrolment_codes SET used_by = $2 WHERE digest = $1", [codeDigest ?? "", id]);
      return undefined;
    });
  }

  /** False when another key has this name, or when an admin gave it to another proxy. */
  isFree(id: string, name: string): Promise<boolean> {
    return isTaken(this.#database, id, name).then((taken) => !taken);
  }

  /** False when no such key is enrolled. */
  async revoke(id: string, nowMs: number): Promise<boolean> {
    const sql = "UPDATE proxy_keys SET revoked_at_ms = $2 WHERE id = $1 AND revoked_at_ms IS NULL";
    return (await this.#database.run(sql, [id, nowMs])) === 1;
  }
}

/** The author of an unused code, or what is wrong with the code. */
export async function codeOf(
  inside: Queries,
  digest: string | undefined,
  nowMs: number,
): Promise<{ author: string } | CodeFault> {
  if (digest === undefined) return "codeMissing";
  const [row] = await inside.all("SELECT author, expires_at_ms, used_by FROM enrolment_codes WHERE digest = $1", [
    digest,
  ]);
  if (row === undefined) return "wrongCode";
  if (row["used_by"] !== null) return "codeUsed";
  const expiresAtMs = Number(row["expires_at_ms"]);
  return expiresAtMs !== NEVER_MS && expiresAtMs <= nowMs ? "codeExpired" : { author: String(row["author"]) };
}

async function isTaken(queries: Pick<Queries, "all">, id: string, name: string): Promise<boolean> {
  const sql = `SELECT id FROM proxy_keys WHERE name = $1 AND id <> $2 AND revoked_at_ms IS NULL
    UNION ALL SELECT s.id FROM proxy_states s JOIN proxy_keys k ON k.id = s.id
    WHERE s.name = $1 AND s.id <> $2 AND k.revoked_at_ms IS NULL`;
  return (await queries.all(sql, [name, id])).length > 0;
}

const msOrNull = (cell: Row[string] | undefined): number | null =>
  cell === null || cell === undefined ? null : Number(cell);

const enrolledOf = (row: Row): EnrolledProxy => ({
  id: String(row["id"]),
  name: String(row["name"]),
  enrolledAtMs: Number(row["enrolled_at_ms"]),
  author: String(row["author"]),
  connectedAtMs: Number(row["connected_at_ms"]),
  revokedAtMs: msOrNull(row["revoked_at_ms"]),
});
