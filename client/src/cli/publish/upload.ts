/** Sends objects to one proxy: several at once, each from where the proxy has it, and again after a failure. */
import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import { CLIENT_HEADER } from "@tributary/contract";
import { PUBLICATION_LIMITS, type LibraryProxy } from "@tributary/contract/publication-schema";
import { checkUnchanged, type Source } from "./digest";
import { ask, HttpFault, pause, type Answer } from "./http";

const PARALLEL = 4;
/** In a row, without a new byte at the proxy: about half a minute. */
const RETRIES = 6;
/** A proxy that only keeps silent is given up after this long. */
const STALL_MS = 90_000;
/** One request brings so many bytes at most, so that a grant or a server between does not end a long one. */
const PART_BYTES = 64 * 1024 * 1024;
/** Of these kinds another try can end well. */
const PASSING_KINDS = ["grantExpired", "offsetWrong", "rootMismatch"];

/** Grants in batches, for all proxies together. */
export class Grants {
  readonly #ask: (objects: string[]) => Promise<string[]>;
  readonly #objects: string[];
  readonly #known = new Map<string, Promise<string>>();

  constructor(objects: string[], ask: (objects: string[]) => Promise<string[]>) {
    this.#objects = objects;
    this.#ask = ask;
  }

  of(object: string): Promise<string> {
    return this.#known.get(object) ?? this.#fetch(object);
  }

  /** A proxy refused this one. */
  forget(object: string, grant: Promise<string>): void {
    if (this.#known.get(object) === grant) this.#known.delete(object);
  }

  #fetch(object: string): Promise<string> {
    const first = this.#objects.indexOf(object);
    const batch = this.#objects
      .slice(first)
      .filter((each) => !this.#known.has(each))
      .slice(0, PUBLICATION_LIMITS.grantsPerRequest);
    const answer = this.#ask(batch);
    for (const [index, each] of batch.entries()) {
      const grant = answer.then((grants) => grants[index] ?? "");
      grant.catch(() => this.#known.delete(each));
      this.#known.set(each, grant);
    }
    return this.#known.get(object)!;
  }
}

export interface Upload {
  proxy: LibraryProxy;
  sources: readonly Source[];
  grants: Grants;
  /** Bytes that went out; fewer than none if they must go again. */
  onBytes(bytes: number): void;
}

/** Resolves when the proxy holds every object. Throws the first fault that does not pass. */
export async function upload({ proxy, sources, grants, onBytes }: Upload): Promise<void> {
  const queue = [...sources];
  let hasFailed = false;
  const work = async (): Promise<void> => {
    for (let source = queue.shift(); source && !hasFailed; source = queue.shift())
      await new ObjectUpload(proxy, source, grants, onBytes).run();
  };
  const all = Array.from({ length: Math.min(PARALLEL, queue.length) }, () =>
    work().catch((error: unknown) => {
      hasFailed = true;
      throw error;
    }),
  );
  const failed = (await Promise.allSettled(all)).find((end) => end.status === "rejected");
  if (failed) throw failed.reason;
}

class ObjectUpload {
  readonly #url: string;
  readonly #source: Source;
  readonly #grants: Grants;
  readonly #onBytes: (bytes: number) => void;
  /** Bytes that went out. */
  #doneBytes = 0;
  /** Bytes that the proxy said it has, at most. */
  #heldBytes = 0;
  /** When it said so. */
  #heldMs = performance.now();

  constructor(proxy: LibraryProxy, source: Source, grants: Grants, onBytes: (bytes: number) => void) {
    this.#url = `${proxy.url.replace(/\/+$/, "")}/v1/objects/${source.object}`;
    this.#source = source;
    this.#grants = grants;
    this.#onBytes = onBytes;
  }

  async run(): Promise<void> {
    for (let tries = 0; ; tries++) {
      const grant = this.#grants.of(this.#source.object);
      const before = this.#heldBytes;
      try {
        return await this.#send(await grant);
      } catch (error) {
        await checkUnchanged(this.#source);
        if (!(error instanceof HttpFault) || !(error.isTransient || PASSING_KINDS.includes(error.kind))) throw error;
        if (error.kind === "grantExpired") this.#grants.forget(this.#source.object, grant);
        if (this.#heldBytes > before) tries = 0;
        // The first failure may have cost a part that took long. The next try finds what the proxy has of it.
        const isSilent = tries > 0 && performance.now() - this.#heldMs > STALL_MS;
        if (tries >= RETRIES || isSilent) throw error;
        await pause(tries, error);
      }
    }
  }

  async #send(grant: string): Promise<void> {
    const headers = { authorization: `Bearer ${grant}`, [CLIENT_HEADER]: "publish" };
    let offset = await this.#offset(headers);
    while (offset !== undefined) offset = await this.#part(offset, headers);
    this.#note(this.#source.bytes);
  }

  /** Undefined: the proxy has the object. */
  async #offset(headers: Record<string, string>): Promise<number | undefined> {
    const answer = await ask(this.#url, { method: "HEAD", headers }).catch((error: unknown) => {
      if (error instanceof HttpFault && error.status === 404) return { status: 204, headers: {} };
      throw error;
    });
    if (answer.status === 200) return undefined;
    return this.#noted(answer);
  }

  /** Returns where the next part begins. */
  async #part(offset: number, headers: Record<string, string>): Promise<number | undefined> {
    const bytes = Math.min(PART_BYTES, this.#source.bytes - offset);
    const body = bytes === 0 ? undefined : this.#read(offset, bytes);
    const answer = await ask(this.#url, {
      method: "PATCH",
      headers: {
        ...headers,
        "upload-offset": String(offset),
        "content-type": "application/offset+octet-stream",
        "content-length": String(bytes),
      },
      ...(body && { body }),
    }).finally(() => body?.destroy());
    if (answer.status === 201) return undefined;
    const next = this.#noted(answer);
    if (next <= offset) throw new HttpFault("the proxy took no byte of a part", "", 0);
    return next;
  }

  /** Reports the bytes as they go out. */
  #read(offset: number, bytes: number): Readable {
    const file = createReadStream(this.#source.file, { start: offset, end: offset + bytes - 1 });
    const note = (piece: Buffer): void => this.#note(this.#doneBytes + piece.length);
    const pieces = async function* (): AsyncGenerator<Buffer> {
      for await (const piece of file as AsyncIterable<Buffer>) {
        note(piece);
        yield piece;
      }
    };
    return Readable.from(pieces(), { objectMode: false });
  }

  #noted({ headers }: Pick<Answer, "headers">): number {
    const offset = Number(headers["upload-offset"] ?? 0);
    if (!Number.isSafeInteger(offset) || offset < 0 || offset > this.#source.bytes)
      throw new HttpFault(`the proxy has a wrong offset: ${headers["upload-offset"]}`, "", 502);
    this.#note(offset);
    if (offset > this.#heldBytes) [this.#heldBytes, this.#heldMs] = [offset, performance.now()];
    return offset;
  }

  #note(doneBytes: number): void {
    this.#onBytes(doneBytes - this.#doneBytes);
    this.#doneBytes = doneBytes;
  }
}
