/**
 * RevisionsFile: which revisions of publications were seen, kept between runs in a file of the user's. It names
 * publications by digests, so it does not tell what was watched. Several programs may use it at once: the last one to
 * write wins, and a revision that got lost so is noted again the next time.
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { REVISIONS_MAX, type SeenRevisions } from "../published/revisions";
import { configFolder } from "./folders";

/** A publication that was not seen for this long is forgotten, so that its publisher may begin anew. */
const KEPT_MS = 30 * 86_400_000;
/** A longer file is not one of ours. */
const CHARS_MAX = REVISIONS_MAX * 128;

const Kept = z.array(
  z.object({ id: z.string(), revision: z.number().int().nonnegative(), seenMs: z.number() }).strict(),
);
type Kept = z.infer<typeof Kept>;

const idOf = (publication: string): string => createHash("sha256").update(publication).digest("hex").slice(0, 32);

export class RevisionsFile implements SeenRevisions {
  readonly file: string;
  readonly #nowMs: () => number;
  #writing: Promise<void> = Promise.resolve();

  constructor(file = path.join(configFolder(), "revisions.json"), nowMs: () => number = Date.now) {
    this.file = file;
    this.#nowMs = nowMs;
  }

  async highest(publication: string): Promise<number> {
    await this.#writing;
    const id = idOf(publication);
    return (await this.#read()).find((one) => one.id === id)?.revision ?? 0;
  }

  /** Playback does not fail where the file cannot be written: then nothing is remembered. */
  note(publication: string, revision: number): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write(idOf(publication), revision)).catch(() => undefined);
    return this.#writing;
  }

  async #read(): Promise<Kept> {
    const text = await readFile(this.file, "utf8").catch(() => "");
    if (text.length > CHARS_MAX) return [];
    const kept = Kept.safeParse(jsonOf(text));
    const now = this.#nowMs();
    return kept.success ? kept.data.filter(({ seenMs }) => Math.abs(now - seenMs) < KEPT_MS) : [];
  }

  async #write(id: string, revision: number): Promise<void> {
    const known = await this.#read();
    const highest = Math.max(revision, known.find((one) => one.id === id)?.revision ?? 0);
    const others = known.filter((one) => one.id !== id);
    const kept = [...others, { id, revision: highest, seenMs: this.#nowMs() }].slice(-REVISIONS_MAX);
    const draft = `${this.file}.${randomUUID()}`;
    try {
      await mkdir(path.dirname(this.file), { recursive: true, mode: 0o700 });
      await writeFile(draft, JSON.stringify(kept), { mode: 0o600 });
      await rename(draft, this.file);
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
