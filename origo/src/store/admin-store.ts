/**
 * AdminStore: stores users, logins, decisions about proxies, versions of the configuration, experiments, saved views
 * and the signing key, in the same database as the records. The rules for them are in access.ts and settings.ts.
 */
import type { Experiment, Role, SettingValues, User, View } from "@tributary/contract/admin-schema";
import type { Cell, Database, Queries, Row } from "./database";

export type ProxyState = "live" | "draining" | "disabled";

/** What was decided about a proxy. The proxy need not be live. */
export interface StoredDecision {
  state: ProxyState;
  /** Replaces the name that the proxy gave itself. */
  name: string | null;
  /** Origo disabled it, because clients showed false packets of it. */
  isConvicted: boolean;
}

export interface ConfigVersion {
  version: number;
  author: string;
  reason: string;
  atMs: number;
  values: SettingValues;
}

export interface StoredLogin {
  /** The digest of the cookie. Someone who reads the table cannot sign in with it. */
  id: string;
  userName: string;
  csrfToken: string;
  expiresAtMs: number;
}

type Documents = "experiments" | "views";

export class AdminStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async users(): Promise<User[]> {
    return (await this.#database.all("SELECT name, role, created_at_ms, last_login_ms FROM users ORDER BY name")).map(
      userOf,
    );
  }

  async passwordOf(name: string): Promise<{ password: string; role: Role } | undefined> {
    const [row] = await this.#database.all("SELECT password, role FROM users WHERE name = $1", [name]);
    return row && { password: String(row["password"]), role: row["role"] as Role };
  }

  /** False when the name is taken, or, with `onlyFirst`, when there is any user. */
  async addUser(
    user: { name: string; password: string; role: Role },
    nowMs: number,
    onlyFirst = false,
  ): Promise<boolean> {
    const sql = `INSERT INTO users SELECT $1::VARCHAR, $2::VARCHAR, $3::VARCHAR, $4::DOUBLE PRECISION, NULL
      WHERE NOT EXISTS (SELECT 1 FROM users${onlyFirst ? "" : " WHERE name = $1::VARCHAR"})`;
    return (await this.#decide(sql, [user.name, user.password, user.role, nowMs])) === 1;
  }

  /** False when there is no user with this name, or when the last admin would become a viewer. */
  async changeUser(name: string, change: { password?: string | undefined; role?: Role | undefined }): Promise<boolean> {
    const sql = `UPDATE users SET password = coalesce($2::VARCHAR, password), role = coalesce($3::VARCHAR, role)
      WHERE name = $1::VARCHAR AND ($3::VARCHAR IS NULL OR $3::VARCHAR = 'admin' OR ${OTHER_ADMIN})`;
    return (await this.#decide(sql, [name, change.password ?? null, change.role ?? null])) === 1;
  }

  /** False when there is no user with this name, or when this is the last admin. */
  async deleteUser(name: string): Promise<boolean> {
    return (
      (await this.#decide(`DELETE FROM users WHERE name = $1::VARCHAR AND (role <> 'admin' OR ${OTHER_ADMIN})`, [
        name,
      ])) === 1
    );
  }

  async noteLogin(name: string, nowMs: number): Promise<void> {
    await this.#database.run("UPDATE users SET last_login_ms = $2 WHERE name = $1", [name, nowMs]);
  }

  async addLogin(login: StoredLogin, nowMs: number): Promise<void> {
    await this.#database.run("DELETE FROM logins WHERE expires_at_ms <= $1", [nowMs]);
    await this.#database.run("INSERT INTO logins VALUES ($1, $2, $3, $4)", [
      login.id,
      login.userName,
      login.csrfToken,
      login.expiresAtMs,
    ]);
  }

  async login(id: string, nowMs: number): Promise<{ name: string; role: Role; csrfToken: string } | undefined> {
    const sql = `SELECT u.name, u.role, l.csrf_token FROM logins l JOIN users u ON u.name = l.user_name
      WHERE l.id = $1 AND l.expires_at_ms > $2`;
    const [row] = await this.#database.all(sql, [id, nowMs]);
    return row && { name: String(row["name"]), role: row["role"] as Role, csrfToken: String(row["csrf_token"]) };
  }

  async endLogin(id: string): Promise<void> {
    await this.#database.run("DELETE FROM logins WHERE id = $1", [id]);
  }

  async endLoginsOf(userName: string): Promise<void> {
    await this.#database.run("DELETE FROM logins WHERE user_name = $1", [userName]);
  }

  async proxyStates(): Promise<({ id: string } & StoredDecision)[]> {
    const rows = await this.#database.all("SELECT id, state, name, is_convicted FROM proxy_states");
    return rows.map((row) => ({
      id: String(row["id"]),
      state: row["state"] as ProxyState,
      name: row["name"] === null ? null : String(row["name"]),
      isConvicted: row["is_convicted"] === true,
    }));
  }

  async decide(id: string, { state, name, isConvicted }: StoredDecision): Promise<void> {
    const values = [id, state, name, isConvicted];
    await this.#database.exclusive(async (inside) => {
      const sql = "UPDATE proxy_states SET state = $2, name = $3, is_convicted = $4 WHERE id = $1";
      const changed = await inside.run(sql, values);
      if (changed === 0) await inside.run("INSERT INTO proxy_states VALUES ($1, $2, $3, $4)", values);
    });
  }

  /** Newest first. */
  async configVersions(limit: number): Promise<ConfigVersion[]> {
    const rows = await this.#database.all(
      "SELECT version, author, reason, at_ms, content FROM config_versions ORDER BY version DESC LIMIT $1",
      [limit],
    );
    return rows.map((row) => ({
      version: Number(row["version"]),
      author: String(row["author"]),
      reason: String(row["reason"]),
      atMs: Number(row["at_ms"]),
      values: JSON.parse(String(row["content"])) as SettingValues,
    }));
  }

  /** False when this version or a later one exists already. */
  async addConfigVersion({ version, author, reason, atMs, values }: ConfigVersion): Promise<boolean> {
    const sql = `INSERT INTO config_versions
      SELECT $1::INTEGER, $2::VARCHAR, $3::VARCHAR, $4::DOUBLE PRECISION, $5::VARCHAR
      WHERE NOT EXISTS (SELECT 1 FROM config_versions WHERE version >= $1::INTEGER)`;
    return (await this.#decide(sql, [version, author, reason, atMs, JSON.stringify(values)])) === 1;
  }

  experiments(): Promise<Experiment[]> {
    return documentsIn(this.#database, "experiments");
  }

  views(): Promise<View[]> {
    return documentsIn(this.#database, "views");
  }

  async addDocument(table: Documents, document: Experiment | View): Promise<void> {
    await this.#database.run(`INSERT INTO ${table} VALUES ($1, $2, $3)`, [
      document.id,
      document.createdAtMs,
      JSON.stringify(document),
    ]);
  }

  /**
   * Replaces an experiment by the result of `change`, which also gets all experiments. No other experiment changes at
   * the same time. Undefined when no experiment has this id. Nothing changes when `change` throws.
   */
  changeExperiment(
    id: string,
    change: (known: Experiment, all: readonly Experiment[]) => Experiment,
  ): Promise<Experiment | undefined> {
    return this.#database.exclusive(async (inside) => {
      const all = await documentsIn<Experiment>(inside, "experiments");
      const known = all.find((each) => each.id === id);
      if (known === undefined) return undefined;
      const changed = change(known, all);
      await inside.run("UPDATE experiments SET content = $2 WHERE id = $1", [id, JSON.stringify(changed)]);
      return changed;
    });
  }

  async deleteView(id: string): Promise<boolean> {
    return (await this.#database.run("DELETE FROM views WHERE id = $1", [id])) === 1;
  }

  /** The secret with this name. `make` creates it the first time. */
  async secret(name: string, make: () => string): Promise<string> {
    await this.#decide(
      `INSERT INTO secrets SELECT $1::VARCHAR, $2::VARCHAR
      WHERE NOT EXISTS (SELECT 1 FROM secrets WHERE name = $1::VARCHAR)`,
      [name, make()],
    );
    const [row] = await this.#database.all("SELECT content FROM secrets WHERE name = $1", [name]);
    if (row === undefined) throw new Error(`the secret ${name} was not stored`);
    return String(row["content"]);
  }

  async forgetSecret(name: string): Promise<void> {
    await this.#database.run("DELETE FROM secrets WHERE name = $1", [name]);
  }

  /** Runs a change that depends on what is stored, while no other one runs. Resolves to the number of changed rows. */
  #decide(sql: string, values: readonly Cell[]): Promise<number> {
    return this.#database.exclusive((inside) => inside.run(sql, values));
  }
}

const OTHER_ADMIN = "EXISTS (SELECT 1 FROM users other WHERE other.role = 'admin' AND other.name <> $1::VARCHAR)";

async function documentsIn<T>(queries: Queries, table: Documents): Promise<T[]> {
  const rows = await queries.all(`SELECT content FROM ${table} ORDER BY created_at_ms DESC, id`);
  return rows.map((row) => JSON.parse(String(row["content"])) as T);
}

function userOf(row: Row): User {
  const lastLoginMs = row["last_login_ms"];
  return {
    name: String(row["name"]),
    role: row["role"] as Role,
    createdAtMs: Number(row["created_at_ms"]),
    lastLoginMs: lastLoginMs === null ? null : Number(lastLoginMs),
  };
}
