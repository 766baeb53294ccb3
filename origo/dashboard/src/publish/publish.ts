/** Publish: hashes files, has Origo sign the manifest, sends each object to its proxies, and releases. */
import {
  isPlaylist,
  PUBLICATION_LIMITS,
  type GrantsResponse,
  type LibraryProxy,
  type PendingPublication,
  type Release,
} from "@tributary/contract/publication-schema";
import { api, under } from "../api";
import type { ChosenFile } from "./files";
import type { Progress, Task } from "./worker";

export interface Step {
  what: "Reading" | "Sending" | "Releasing";
  /** Of the step's work, 0 to 1. */
  share: number;
}

const PARALLEL = 4;

type NewTask = Task extends infer Each ? (Each extends Task ? Omit<Each, "id"> : never) : never;

/** Rejects with an error that names what is at fault. Publishing the same again goes on where this ended. */
export async function publish(
  name: string,
  files: readonly ChosenFile[],
  onStep: (step: Step) => void,
): Promise<Release> {
  const worker = new Hands();
  try {
    const objects = await hashAll(worker, files, onStep);
    const manifest = files.map(({ path, type }, index) => ({ path, type, object: objects[index]! }));
    const begun = await api.post<PendingPublication>("/v1/library/publications", { name, files: manifest });
    const byObject = new Map(files.map(({ path, file }, index) => [objects[index]!, { path, file }]));
    await sendPlaylists(byObject);
    await sendRest(worker, begun, files, objects, onStep);
    onStep({ what: "Releasing", share: 0 });
    return await api.post<Release>("/v1/library/releases", { name, revision: begun.revision });
  } finally {
    worker.close();
  }
}

async function hashAll(worker: Hands, files: readonly ChosenFile[], onStep: (step: Step) => void): Promise<string[]> {
  const tally = tallyOf(
    "Reading",
    files.reduce((sum, { file }) => sum + file.size, 0),
    onStep,
  );
  return inParallel(files, async ({ path, file }) => {
    const { object } = await worker.run({ kind: "hash", file }, tally()).catch(named(path));
    return object ?? "";
  });
}

async function sendPlaylists(byObject: ReadonlyMap<string, { path: string; file: File }>): Promise<void> {
  for (const [object, { path, file }] of byObject) {
    if (!isPlaylist(path)) continue;
    const response = await fetch(under("/v1/objects", object), { method: "PUT", body: file });
    if (response.ok) continue;
    const answer = (await response.json().catch(() => undefined)) as { error?: { message?: string } } | undefined;
    throw new Error(`${path}: ${answer?.error?.message ?? `Origo answered ${response.status}`}`);
  }
}

async function sendRest(
  worker: Hands,
  { name, revision, proxies }: PendingPublication,
  files: readonly ChosenFile[],
  objects: readonly string[],
  onStep: (step: Step) => void,
): Promise<void> {
  const sent = new Map(
    files.flatMap(({ path, file }, index) => (isPlaylist(path) ? [] : [[objects[index]!, { path, file }] as const])),
  );
  const all = [...sent.keys()];
  const bytes = [...sent.values()].reduce((sum, { file }) => sum + file.size, 0);
  const tally = tallyOf("Sending", bytes * proxies.length, onStep);
  for (let at = 0; at < all.length; at += PUBLICATION_LIMITS.grantsPerRequest) {
    const batch = all.slice(at, at + PUBLICATION_LIMITS.grantsPerRequest);
    const { grants } = await api.post<GrantsResponse>("/v1/library/grants", { name, revision, objects: batch });
    const jobs = batch.flatMap((object, index) =>
      proxies.map((proxy: LibraryProxy) => ({ object, grant: grants[index]!, proxy })),
    );
    await inParallel(jobs, async ({ object, grant, proxy }) => {
      const { path, file } = sent.get(object)!;
      await worker.run({ kind: "upload", file, object, grant, proxyUrl: proxy.url }, tally()).catch(named(path));
    });
  }
}

const named =
  (path: string) =>
  (error: Error): never => {
    throw new Error(`${path}: ${error.message}`);
  };

/** Adds up what several tasks have done. */
function tallyOf(what: Step["what"], allBytes: number, onStep: (step: Step) => void): () => (bytes: number) => void {
  let doneBytes = 0;
  onStep({ what, share: 0 });
  return () => {
    let ownBytes = 0;
    return (bytes) => {
      doneBytes += bytes - ownBytes;
      ownBytes = bytes;
      onStep({ what, share: allBytes === 0 ? 1 : doneBytes / allBytes });
    };
  };
}

/** The results in the order of the items. The first error ends all. */
async function inParallel<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const queue = items.entries();
  const run = async (): Promise<void> => {
    for (const [index, item] of queue) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: PARALLEL }, run));
  return results;
}

/** The worker, and who waits for which of its answers. */
class Hands {
  readonly #worker = new Worker(/* webpackChunkName: "publish-worker" */ new URL("./worker.ts", import.meta.url));
  readonly #waiting = new Map<number, (progress: Progress) => void>();
  #next = 0;

  constructor() {
    this.#worker.addEventListener("message", ({ data }: MessageEvent<Progress>) => this.#waiting.get(data.id)?.(data));
    this.#worker.addEventListener("error", ({ message }) => {
      const error = message || "the part of this page that sends files could not be loaded";
      for (const [id, tell] of this.#waiting) tell({ id, doneBytes: 0, error });
    });
  }

  run(task: NewTask, onBytes: (bytes: number) => void): Promise<Progress> {
    const id = this.#next++;
    return new Promise<Progress>((resolve, reject) => {
      this.#waiting.set(id, (progress) => {
        if (progress.error !== undefined) return reject(new Error(progress.error));
        onBytes(progress.doneBytes);
        if (progress.isDone || progress.object !== undefined) resolve(progress);
      });
      this.#worker.postMessage({ id, ...task });
    }).finally(() => this.#waiting.delete(id));
  }

  close(): void {
    this.#worker.terminate();
  }
}
