/**
 * ConvictionStore: in which networks clients accused a proxy, and when last. Networks are stored as digests.
 * convictions.ts says what counts.
 */
import type { Database } from "./database";

/** `evidence` was checked against a signed root. A `hint` is what a client says. */
export type AccusationKind = "evidence" | "hint";

export interface Accusation {
  kind: AccusationKind;
  proxyId: string;
  /** A digest of the network. */
  network: string;
}

/** Of one proxy and kind. The networks that accused it longest ago go first. */
const NETWORKS_MAX = 1000;
const OF_PROXY = "kind = $1 AND proxy = $2";

export class ConvictionStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Resolves to the number of networks that accused the proxy after `sinceMs`, before this accusation and with it. */
  note({ kind, proxyId, network }: Accusation, nowMs: number, sinceMs: number): Promise<[before: number, now: number]> {
    return this.#database.exclusive(async (inside) => {
      const count = async (): Promise<number> => {
        const sql = `SELECT count(*) AS count FROM convictions WHERE ${OF_PROXY} AND at_ms > $3`;
        return Number((await inside.all(sql, [kind, proxyId, sinceMs]))[0]?.["count"]);
      };
      const before = await count();
      await inside.run(`DELETE FROM convictions WHERE ${OF_PROXY} AND network = $3`, [kind, proxyId, network]);
      await inside.run("INSERT INTO convictions VALUES ($1, $2, $3, $4)", [kind, proxyId, network, nowMs]);
      await inside.run(
        `DELETE FROM convictions WHERE ${OF_PROXY} AND network NOT IN
          (SELECT network FROM convictions WHERE ${OF_PROXY} ORDER BY at_ms DESC LIMIT ${NETWORKS_MAX})`,
        [kind, proxyId],
      );
      return [before, await count()];
    });
  }

  /** The number of networks that accused each proxy after `sinceMs`. */
  async counts(sinceMs: number): Promise<{ kind: AccusationKind; proxyId: string; networks: number }[]> {
    const sql = "SELECT kind, proxy, count(*) AS networks FROM convictions WHERE at_ms > $1 GROUP BY kind, proxy";
    return (await this.#database.all(sql, [sinceMs])).map((row) => ({
      kind: row["kind"] as AccusationKind,
      proxyId: String(row["proxy"]),
      networks: Number(row["networks"]),
    }));
  }

  async forget(proxyId: string): Promise<void> {
    await this.#database.run("DELETE FROM convictions WHERE proxy = $1", [proxyId]);
  }

  async drop(untilMs: number): Promise<void> {
    await this.#database.run("DELETE FROM convictions WHERE at_ms <= $1", [untilMs]);
  }
}
