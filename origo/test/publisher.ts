/** A publisher for the tests: its key, what it signs, and the trees of its files. */
import { createHash, generateKeyPairSync, type KeyObject } from "node:crypto";
import type { Manifest, PublishedFile } from "@tributary/contract/publication-schema";
import { publicKeyOf, sign } from "@tributary/contract/signed";
import { hexOf, LeafMaker, objectId, Tree } from "@tributary/contract/tree";

const sha256 = (bytes: Uint8Array): Uint8Array => createHash("sha256").update(bytes).digest();

export function objectOf(content: Uint8Array | string): string {
  const bytes = Buffer.from(content);
  const leaves = new LeafMaker(sha256);
  leaves.update(bytes);
  return objectId({ root: hexOf(new Tree(leaves.finish(), sha256).root), bytes: bytes.length });
}

export const fileOf = (path: string, type: string, content: Uint8Array | string): PublishedFile => ({
  path,
  type,
  object: objectOf(content),
});

/** What Origo answered. */
export interface Answered {
  status: number;
  body: Record<string, unknown> & { error?: { kind: string; message: string } };
  headers: Headers;
}

export class TestPublisher {
  private constructor(
    readonly origoUrl: string,
    readonly privateKey: KeyObject,
    readonly key: string,
    readonly nowMs: () => number,
  ) {}

  static async make(origoUrl: string, nowMs = Date.now): Promise<TestPublisher> {
    const { privateKey } = generateKeyPairSync("ed25519");
    return new TestPublisher(origoUrl, privateKey, await publicKeyOf(privateKey), nowMs);
  }

  /** The same key at another Origo. */
  at(origoUrl: string): TestPublisher {
    return new TestPublisher(origoUrl, this.privateKey, this.key, this.nowMs);
  }

  async act(action: Record<string, unknown>): Promise<Answered> {
    return this.post("/v1/publisher", await this.signed({ key: this.key, atMs: this.nowMs(), ...action }));
  }

  signed(payload: unknown): Promise<string> {
    return sign(payload, this.privateKey);
  }

  async begin(name: string, revision: number, files: PublishedFile[]): Promise<Answered> {
    const manifest: Manifest = { kind: "manifest", key: this.key, name, revision, files };
    return this.post("/v1/publications", await this.signed(manifest));
  }

  post(path: string, body: string): Promise<Answered> {
    return ask(this.origoUrl + path, { method: "POST", headers: { "content-type": "application/jose" }, body });
  }

  putPlaylist(content: string, object = objectOf(content)): Promise<Answered> {
    return ask(`${this.origoUrl}/v1/objects/${object}`, { method: "PUT", body: content });
  }
}

export async function ask(url: string, init: RequestInit = {}): Promise<Answered> {
  const response = await fetch(url, { redirect: "manual", ...init });
  const text = await response.text();
  let body: Answered["body"] = { text };
  try {
    body = JSON.parse(text) as Answered["body"];
  } catch {
    // No JSON.
  }
  return { status: response.status, body, headers: response.headers };
}
