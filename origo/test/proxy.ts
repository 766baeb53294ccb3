/** A proxy for the tests that consists of its key and its link to Origo alone. */
import { createPublicKey, generateKeyPairSync, sign, type KeyObject } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { io, type Socket } from "socket.io-client";
import { proofText, type ProxyAck, type ProxyHello, type ProxyProof } from "@tributary/contract/schema";

export const newKey = (): KeyObject => generateKeyPairSync("ed25519").privateKey;

export function proofOf(key: KeyObject, challenge: string, code?: string): ProxyProof {
  const { x: publicKey = "" } = createPublicKey(key).export({ format: "jwk" });
  const signature = sign(null, proofText(challenge), key).toString("base64url");
  return { publicKey, signature, ...(code === undefined ? {} : { code }) };
}

/** The code that Origo keeps in its data folder. */
export const codeIn = (dataDir: string): string => readFileSync(join(dataDir, "enrolment-code"), "utf8").trim();

export interface LinkedProxy {
  socket: Socket;
  challenge: string;
  /** Sends a hello with the proof of `key`. */
  hello(hello: ProxyHello, key: KeyObject, code?: string): Promise<ProxyAck>;
}

/** Connects and takes the challenge. `onEvent` sees everything that Origo sends. */
export async function linkTo(
  url: string,
  onEvent: (event: string, message: unknown) => void = () => undefined,
): Promise<LinkedProxy> {
  const socket = io(`${url}/proxies`, { transports: ["websocket"], reconnection: false, forceNew: true });
  socket.onAny(onEvent);
  const challenge = await new Promise<string>((resolve, reject) => {
    socket.once("challenge", resolve);
    socket.once("connect_error", reject);
  });
  const hello: LinkedProxy["hello"] = (message, key, code) =>
    socket.emitWithAck("hello", message, proofOf(key, challenge, code)) as Promise<ProxyAck>;
  return { socket, challenge, hello };
}

const keys = new Map<string, KeyObject>();

/** Connects a proxy, and enrols it with the code in `dataDir`. The same name has the same key in the whole test. */
export async function joinProxy(
  url: string,
  dataDir: string,
  hello: ProxyHello,
  onEvent?: (event: string, message: unknown) => void,
): Promise<{ socket: Socket; id: string }> {
  const key = keys.get(hello.name) ?? newKey();
  keys.set(hello.name, key);
  const link = await linkTo(url, onEvent);
  for (;;) {
    const ack = await link.hello(hello, key, codeIn(dataDir));
    if ("id" in ack) return { socket: link.socket, id: ack.id };
    // Another proxy took the code of the file first.
    if (ack.error.kind !== "codeUsed") throw new Error(ack.error.message);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
