/** PublisherStore: the keys of publishers. Their one-time codes are among those of proxies (enrolment-store.ts). */
import type { ApiErrorKind } from "@tributary/contract/schema";
import type { Database, Row } from "./database";
import { codeOf } from "./enrolment-store";

export interface StoredPublisher {
  key: string;
  label: string;
  /** Who made its code. */
  author: string;
  enrolledAtMs: number;
  /** Null: as the setting says. */
  quotaBytes: number | null;
  revokedAtMs: number | null;
}

export type PublisherFault = Extract<
  ApiErrorKind,
  "codeExpired" | "codeMissing" | "codeUsed" | "keyRevoked" | "tooManyPublishers" | "wrongCode"
>;

const COLUMNS = "key, label, author, enrolled_at_ms, quota_bytes, revoked_at_ms";

export class PublisherStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async all(): Promise<StoredPublisher[]> {
    return (await this.#database.all(`SELECT ${COLUMNS} FROM publishers ORDER BY label, key`)).map(publisherOf);
  }

  /** Lets a key in with an unused code. A key that is in already needs none; it gets the new label. */
  enrol(
    { key, label, codeDigest }: { key: string; label: string; codeDigest: string | undefined },
    nowMs: number,
    publishersMax: number,
  ): Promise<PublisherFault | undefined> {
    return this.#database.exclusive(async (inside) => {
      const [known] = await inside.all(`SELECT ${COLUMNS} FROM publishers WHERE key = $1`, [key]);
      if (known !== undefined) {
        if (known["revoked_at_ms"] !== null) return "keyRevoked";
        await inside.run("UPDATE publishers SET label = $2 WHERE key = $1", [key, label]);
        return undefined;
      }
      const code = await codeOf(inside, codeDigest, nowMs);
      if (typeof code === "string") return code;
      const [counted] = await inside.all("SELECT count(*) AS count FROM publishers WHERE revoked_at_ms IS NULL");
      if (Number(counted?.["count"]) >= publishersMax) return "tooManyPublishers";
      const values = [key, label, code.author, nowMs];
      await inside.run("INSERT INTO publishers VALUES ($1, $2, $3, $4, NULL, NULL)", values);
      await inside.run("UPDATE enrolment_codes SET used_by = $2 WHERE digest = $1", [codeDigest ?? "", key]);
      return undefined;
    });
  }

  /** Lets Origo's own key in. */
  async addOwn(key: string, label: string, nowMs: number): Promise<void> {
    const sql = `INSERT INTO publishers SELECT $1::VARCHAR, $2::VARCHAR, $2::VARCHAR, $3::DOUBLE PRECISION, NULL, NULL
      WHERE NOT EXISTS (SELECT 1 FROM publishers WHERE key = $1::VARCHAR)`;
    await this.#database.exclusive((inside) => inside.run(sql, [key, label, nowMs]));
  }

  /** False when no such key is enrolled. */
  async setQuota(key: string, quotaBytes: number | null): Promise<boolean> {
    const sql = "UPDATE publishers SET quota_bytes = $2 WHERE key = $1 AND revoked_at_ms IS NULL";
    return (await this.#database.run(sql, [key, quotaBytes])) === 1;
  }

  /** False when no such key is enrolled. */
  async revoke(key: string, nowMs: number): Promise<boolean> {
    const sql = "UPDATE publishers SET revoked_at_ms = $2 WHERE key = $1 AND revoked_at_ms IS NULL";
    return (await this.#database.run(sql, [key, nowMs])) === 1;
  }
}

const numberOrNull = (cell: Row[string] | undefined): number | null =>
  cell === null || cell === undefined ? null : Number(cell);

const publisherOf = (row: Row): StoredPublisher => ({
  key: String(row["key"]),
  label: String(row["label"]),
  author: String(row["author"]),
  enrolledAtMs: Number(row["enrolled_at_ms"]),
  quotaBytes: numberOrNull(row["quota_bytes"]),
  revokedAtMs: numberOrNull(row["revoked_at_ms"]),
});
