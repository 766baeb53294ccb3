/** Four proxies that hold the same bytes as published files and as a site's, and the clients that download them. */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { startLinks, type Links } from "@tributary/lab-links";
import { repoRoot, sizeBytes } from "@tributary/lab-stack";
import { BACKBONE } from "../campaign/boxes";
import { exitOf, startDriver, type Driver } from "../kit/driver";
import { fetchAtOrigo } from "../kit/fetch-at-origo";
import type { Got, Order, Reply } from "./driver";

export const PROXIES = 4;
export const RTT_MS = 100;
export const RATE_KB = 896;
/** The files of the publication, and the chunks of the site. */
export const FILES = { first: 1_500_000, later: 1_500_000, film: 8_000_000 } as const;
export type File = keyof typeof FILES;

const HOLDERS_MS_MAX = 15_000;

const SCENARIO = {
  services: true,
  backbone: BACKBONE,
  hosts: {
    client: {},
    origin: {},
    origo: { link: { delay: RTT_MS / 2 } },
    proxy: { count: PROXIES, link: { delay: RTT_MS / 2, up: { rate: `${RATE_KB} KB/s`, queue: "100 ms" } } },
  },
};

export class Clients {
  readonly #drivers: Record<"checked" | "unchecked", Driver<Order, Reply>>;
  readonly #digests = new Map<File, string>();
  #publication = "";

  readonly #links: Links;

  constructor(links: Links) {
    this.#links = links;
    const script = path.join(repoRoot, "lab/bench/dist/vouching/driver.js");
    const unchecked = ["--require", path.join(repoRoot, "lab/bench/dist/vouching/unchecked.js")];
    this.#drivers = { checked: startDriver(links, script), unchecked: startDriver(links, script, unchecked) };
  }

  static async start(): Promise<Clients> {
    const links = await startLinks(SCENARIO);
    try {
      const clients = new Clients(links);
      await clients.#publish();
      return clients;
    } catch (error) {
      await links.close();
      throw error;
    }
  }

  /** Of each proxy's link. */
  async setRate(rate: string): Promise<void> {
    for (let proxy = 1; proxy <= PROXIES; proxy++) await this.#links.set(`proxy${proxy}`, { up: { rate } });
  }

  async close(): Promise<void> {
    for (const driver of Object.values(this.#drivers)) void driver.close();
    await this.#links.close();
  }

  /** The next download of this client finds nothing known and nothing open. */
  async renew(who: "checked" | "unchecked"): Promise<void> {
    await this.#ask(who, { kind: "renew" });
  }

  published(who: "checked" | "unchecked", file: File): Promise<Got> {
    return this.#get(who, file, { kind: "get", url: `${this.#publication}${file}.mp4` });
  }

  /** `name`: as it was given to `hold`. */
  site(who: "checked" | "unchecked", file: File, name: string, symbolBytes?: number): Promise<Got> {
    const url = this.#siteUrl(file, name);
    return this.#get(who, file, { kind: "get", url, ...(symbolBytes === undefined ? {} : { symbolBytes }) });
  }

  /** All proxies hold the site's chunk under this name for the next minute. */
  async hold(files: readonly File[], name: string): Promise<void> {
    const proxies = this.#links.env["PROXY_URLS"]!.split(",");
    const urls = files.flatMap((file) =>
      proxies.map((proxy) => `${proxy}/v1/fetch?url=${encodeURIComponent(this.#siteUrl(file, name))}`),
    );
    await fetchAtOrigo(this.#links, urls);
  }

  #siteUrl(file: File, name: string): string {
    return `${this.#links.env["ORIGIN_URL"]}/__size/${FILES[file]}.mp4?${file}-${name}`;
  }

  async #get(who: "checked" | "unchecked", file: File, order: Order): Promise<Got> {
    const { got } = await this.#ask(who, order);
    if (got?.sha256 !== this.#digests.get(file)) throw new Error(`${JSON.stringify(order)} gave wrong bytes`);
    return got!;
  }

  async #ask(who: "checked" | "unchecked", order: Order): Promise<Reply> {
    const reply = await this.#drivers[who].ask(order);
    if (reply.problem !== undefined) throw new Error(`${who} client, ${JSON.stringify(order)}: ${reply.problem}`);
    return reply;
  }

  async #publish(): Promise<void> {
    const folder = mkdtempSync(path.join(os.tmpdir(), "tributary-vouching-"));
    try {
      for (const [file, bytes] of Object.entries(FILES) as [File, number][]) {
        const body = sizeBytes(0, bytes);
        this.#digests.set(file, createHash("sha256").update(body).digest("hex"));
        writeFileSync(path.join(folder, `${file}.mp4`), body);
      }
      const { code = "" } = await this.#ask("checked", { kind: "code" });
      const origo = this.#links.env["ORIGO_URL"]!;
      const words = ["publish", folder, "--name", "bench", "--origo", origo, "--key", `${folder}.pem`, "--code", code];
      const cli = [process.execPath, path.join(repoRoot, "client/dist/cli.js"), ...words];
      const child = this.#links.run("origo", cli, { stdio: ["ignore", "pipe", "inherit"] });
      let said = "";
      child.stdout!.on("data", (text: Buffer) => (said += text.toString()));
      const status = await exitOf(child);
      const [, address] = /^embed +(\S+)$/m.exec(said) ?? [];
      if (address === undefined) throw new Error(`publish ended with ${status}: ${said}`);
      this.#publication = address;
      await this.#untilHeld(address.replace("/v/", "/v1/publications/").replace(/\/$/, ""));
    } finally {
      rmSync(folder, { recursive: true });
      rmSync(`${folder}.pem`, { force: true });
    }
  }

  async #untilHeld(url: string): Promise<void> {
    for (const endMs = performance.now() + HOLDERS_MS_MAX; ;) {
      const { holders } = (await this.#ask("checked", { kind: "json", url })).json as { holders: number };
      if (holders >= PROXIES) return;
      if (performance.now() > endMs) throw new Error(`${holders} of ${PROXIES} proxies hold the publication`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
