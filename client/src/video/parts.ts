/**
 * The folder NAME.parts of an unfinished film. It has a file for each stretch of each track, to which finished segments
 * are joined in order, finished segments that wait for an earlier one, and a state file. A later run goes on there.
 */
import { createReadStream } from "node:fs";
import { mkdir, open, readFile, readdir, rename, rm, stat, truncate, writeFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { versionSchema, type Version } from "./version";

const stateSchema = z.object({
  version: z.literal(1),
  /** What the segments belong to. Another plan cannot go on with them. */
  plan: z.string(),
  tracks: z.array(
    z.object({
      /** Number of segments that are joined, gaps included. */
      joined: z.number().int().nonnegative(),
      /** Bytes of the files of its stretches. */
      stretchBytes: z.array(z.number().int().nonnegative()),
      /** The last segment that is joined and no gap: its index, and what tells its versions apart. */
      last: z.object({ index: z.number().int().nonnegative(), version: versionSchema }).optional(),
    }),
  ),
});

type State = z.infer<typeof stateSchema>;

export interface FinishedSegment {
  stretch: number;
  /** Undefined for a gap. */
  file: string | undefined;
  version: Version | undefined;
}

export class PartsFolder {
  readonly folder: string;
  readonly #state: State;
  /** For each track: segments that are finished and not joined. A gap has no file. */
  readonly #waiting: Map<number, FinishedSegment>[];
  /** Joins happen one after the other. */
  #joining: Promise<void> = Promise.resolve();

  private constructor(folder: string, state: State) {
    this.folder = folder;
    this.#state = state;
    this.#waiting = state.tracks.map(() => new Map());
  }

  /** Goes on with what is in the folder if it belongs to `plan`, and else begins anew. */
  static async open(folder: string, plan: string, trackCount: number): Promise<PartsFolder> {
    const state = await readState(folder);
    if (state?.plan === plan && state.tracks.length === trackCount && (await isWhole(folder, state))) {
      const parts = new PartsFolder(folder, state);
      await parts.#clean();
      return parts;
    }
    return PartsFolder.begin(folder, plan, trackCount);
  }

  /** Throws away what is in the folder. */
  static async begin(folder: string, plan: string, trackCount: number): Promise<PartsFolder> {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    const tracks = Array.from({ length: trackCount }, () => ({ joined: 0, stretchBytes: [] }));
    const parts = new PartsFolder(folder, { version: 1, plan, tracks });
    await parts.#writeState();
    return parts;
  }

  joinedCount(track: number): number {
    return this.#trackOf(track).joined;
  }

  /** The last segment of a track that an earlier run joined, and its version. */
  lastOf(track: number): { index: number; version: Version } | undefined {
    return this.#trackOf(track).last;
  }

  get joinedBytes(): number {
    return this.#state.tracks.flatMap(({ stretchBytes }) => stretchBytes).reduce((sum, bytes) => sum + bytes, 0);
  }

  /** The files of a track's stretches, without empty ones. */
  files(track: number): string[] {
    const { stretchBytes } = this.#trackOf(track);
    return stretchBytes.flatMap((bytes, stretch) => (bytes > 0 ? [stretchFile(this.folder, track, stretch)] : []));
  }

  /** A file for a segment that is under way. */
  segmentFile(track: number, index: number): string {
    return path.join(this.folder, `segment-${track}-${index}`);
  }

  /** Hands over a segment. Resolves when all segments that can be joined are. */
  finish(track: number, index: number, segment: FinishedSegment): Promise<void> {
    this.#waiting[track]!.set(index, segment);
    this.#joining = this.#joining.then(() => this.#joinWaiting(track));
    return this.#joining;
  }

  remove(): Promise<void> {
    return rm(this.folder, { recursive: true, force: true });
  }

  async #joinWaiting(track: number): Promise<void> {
    const state = this.#trackOf(track);
    const waiting = this.#waiting[track]!;
    for (let next = waiting.get(state.joined); next; next = waiting.get(state.joined)) {
      waiting.delete(state.joined);
      while (state.stretchBytes.length <= next.stretch) state.stretchBytes.push(0);
      if (next.file !== undefined) {
        const bytes = await append(stretchFile(this.folder, track, next.stretch), next.file);
        state.stretchBytes[next.stretch]! += bytes;
      }
      if (next.version !== undefined) state.last = { index: state.joined, version: next.version };
      state.joined++;
      await this.#writeState();
      if (next.file !== undefined) await rm(next.file, { force: true });
    }
  }

  #trackOf(track: number): State["tracks"][number] {
    return this.#state.tracks[track]!;
  }

  /** Removes what an interrupted run left beyond the state. */
  async #clean(): Promise<void> {
    const kept = new Set(["state.json"]);
    for (const [track, { stretchBytes }] of this.#state.tracks.entries())
      for (const [stretch, bytes] of stretchBytes.entries()) {
        if (bytes === 0) continue;
        const file = stretchFile(this.folder, track, stretch);
        kept.add(path.basename(file));
        await truncate(file, bytes);
      }
    for (const name of await readdir(this.folder))
      if (!kept.has(name)) await rm(path.join(this.folder, name), { recursive: true, force: true });
  }

  async #writeState(): Promise<void> {
    const file = path.join(this.folder, "state.json");
    await writeFile(`${file}.new`, JSON.stringify(this.#state));
    await rename(`${file}.new`, file);
  }
}

function stretchFile(folder: string, track: number, stretch: number): string {
  return path.join(folder, `track-${track}-${stretch}`);
}

async function readState(folder: string): Promise<State | undefined> {
  try {
    return stateSchema.parse(JSON.parse(await readFile(path.join(folder, "state.json"), "utf8")));
  } catch {
    return undefined;
  }
}

/** Whether each file has at least the bytes that the state names. */
async function isWhole(folder: string, state: State): Promise<boolean> {
  for (const [track, { stretchBytes }] of state.tracks.entries())
    for (const [stretch, bytes] of stretchBytes.entries()) {
      if (bytes === 0) continue;
      const found = await stat(stretchFile(folder, track, stretch)).catch(() => undefined);
      if ((found?.size ?? 0) < bytes) return false;
    }
  return true;
}

/** Returns the number of bytes. */
async function append(target: string, source: string): Promise<number> {
  const file = await open(target, "a");
  let count = 0;
  try {
    for await (const piece of createReadStream(source, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>) {
      await file.writeFile(piece);
      count += piece.length;
    }
  } finally {
    await file.close();
  }
  return count;
}
