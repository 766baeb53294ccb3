/** Own publisher: the publisher that Origo itself is, for what admins publish in the dashboard. */
import { createPrivateKey, type KeyObject } from "node:crypto";
import type { OwnPublication } from "@tributary/contract/library-schema";
import { Manifest } from "@tributary/contract/publication-schema";
import { publicKeyOf, sign } from "@tributary/contract/signed";
import { faultOf } from "@tributary/contract/fault";
import { Refusal } from "./http";
import type { Publications } from "./publications";
import type { Publishers } from "./publishers";
import type { AdminStore } from "./store/admin-store";
import { newTokenKey } from "./token";

const LABEL = "Origo";

export class OwnPublisher {
  #keys: Promise<{ privateKey: KeyObject; key: string }> | undefined;

  readonly #adminStore: AdminStore;
  readonly #publishers: Publishers;
  readonly #publications: Publications;

  constructor(adminStore: AdminStore, publishers: Publishers, publications: Publications) {
    this.#adminStore = adminStore;
    this.#publishers = publishers;
    this.#publications = publications;
  }

  /** Makes the key at the first use. */
  keys(): Promise<{ privateKey: KeyObject; key: string }> {
    this.#keys ??= this.#open();
    this.#keys.catch(() => (this.#keys = undefined));
    return this.#keys;
  }

  /** The next revision, signed. A pending revision of the same files goes on. */
  async manifest({ name, files }: OwnPublication): Promise<{ manifest: Manifest; text: string }> {
    const { privateKey, key } = await this.keys();
    const rows = this.#publications.list().filter((row) => row.key === key && row.name === name);
    const make = async (revision: number): Promise<{ manifest: Manifest; text: string }> => {
      const manifest = Manifest.safeParse({ kind: "manifest", key, name, revision, files });
      if (!manifest.success) throw new Refusal(400, faultOf(manifest.error));
      return { manifest: manifest.data, text: await sign(manifest.data, privateKey) };
    };
    const pending = rows.find(({ state }) => state === "pending");
    if (pending !== undefined) {
      const again = await make(pending.revision);
      if (again.text === (await this.#publications.manifestOf(pending))) return again;
    }
    return make(1 + Math.max(0, ...rows.map(({ revision }) => revision)));
  }

  async #open(): Promise<{ privateKey: KeyObject; key: string }> {
    const privateKey = createPrivateKey(await this.#adminStore.secret("publisherKey", newTokenKey));
    const key = await publicKeyOf(privateKey);
    await this.#publishers.addOwn(key, LABEL);
    return { privateKey, key };
  }
}
