/**
 * Worker: hashes files and sends them to proxies, so that the page stays responsive. The page itself may not connect to
 * proxies; Origo lets this script alone do so.
 */
import { sha256 } from "@noble/hashes/sha2";
import { hexOf, LeafMaker, objectId, Tree } from "@tributary/contract/tree";

export type Task =
  | { id: number; kind: "hash"; file: File }
  | { id: number; kind: "upload"; file: File; object: string; proxyUrl: string; grant: string };

/** `doneBytes` counts up. The last answer has `object` or `error`, or `isDone`. */
export interface Progress {
  id: number;
  doneBytes: number;
  object?: string;
  isDone?: boolean;
  error?: string;
}

const READ_BYTES = 4 * 1024 * 1024;
const PART_BYTES = 8 * 1024 * 1024;
const TRIES = 6;

const scope = self as unknown as { postMessage(message: Progress): void };

addEventListener("message", ({ data }: MessageEvent<Task>) => {
  const tell = (doneBytes: number, more: Omit<Progress, "id" | "doneBytes"> = {}): void =>
    scope.postMessage({ id: data.id, doneBytes, ...more });
  const work = data.kind === "hash" ? hash(data.file, tell) : upload(data, tell);
  work.catch((error: Error) => tell(0, { error: error.message }));
});

type Tell = (doneBytes: number, more?: Omit<Progress, "id" | "doneBytes">) => void;

async function hash(file: File, tell: Tell): Promise<void> {
  const leaves = new LeafMaker(sha256);
  for (let at = 0; at < file.size; at += READ_BYTES) {
    const part = await file.slice(at, at + READ_BYTES).arrayBuffer();
    leaves.update(new Uint8Array(part));
    tell(leaves.bytes);
  }
  const root = hexOf(new Tree(leaves.finish(), sha256).root);
  tell(leaves.bytes, { object: objectId({ root, bytes: leaves.bytes }) });
}

class Refused extends Error {}

async function upload(task: Extract<Task, { kind: "upload" }>, tell: Tell): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await send(task, tell);
      tell(task.file.size, { isDone: true });
      return;
    } catch (error) {
      if (error instanceof Refused || tries === TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, 250 * 2 ** tries));
    }
  }
}

/** Sends what the proxy does not have. */
async function send({ file, object, proxyUrl, grant }: Extract<Task, { kind: "upload" }>, tell: Tell): Promise<void> {
  const address = `${proxyUrl.replace(/\/+$/, "")}/v1/objects/${object}`;
  const headers = { authorization: `Bearer ${grant}` };
  const known = await fetch(address, { method: "HEAD", headers }).catch(unreachable(proxyUrl));
  if (known.status === 200) return;
  let offset = known.status === 204 ? Number(known.headers.get("upload-offset") ?? 0) : 0;
  for (;;) {
    tell(offset);
    const response = await fetch(address, {
      method: "PATCH",
      headers: { ...headers, "upload-offset": String(offset), "content-type": "application/offset+octet-stream" },
      body: file.slice(offset, offset + PART_BYTES),
    }).catch(unreachable(proxyUrl));
    if (response.status === 201) return;
    if (response.status !== 204) throw await faultOf(response, proxyUrl);
    const next = Number(response.headers.get("upload-offset"));
    if (!(next > offset)) throw new Error(`${proxyUrl} takes no bytes`);
    offset = next;
  }
}

const unreachable =
  (proxyUrl: string) =>
  (error: Error): never => {
    throw new Error(`the proxy ${proxyUrl} cannot be reached from this browser: ${error.message}`);
  };

async function faultOf(response: Response, proxyUrl: string): Promise<Error> {
  const answer = (await response.json().catch(() => undefined)) as { error?: { message?: string } } | undefined;
  const message = `${proxyUrl}: ${answer?.error?.message ?? `status ${response.status}`}`;
  const mayPass = response.status >= 500 || response.status === 409 || response.status === 429;
  return mayPass ? new Error(message) : new Refused(message);
}
