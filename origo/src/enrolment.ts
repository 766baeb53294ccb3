/**
 * Enrolment: which proxies may connect. A proxy has an Ed25519 key of its own. A new key is let in with a one-time
 * code, which an admin makes in the dashboard or reads from the code file; its name is then bound to the key. The id of
 * a proxy is a digest of its key. Nobody who reads the database or the connection can take another proxy's place.
 */
import { createHash, createPublicKey, randomBytes, verify, type KeyObject } from "node:crypto";
import { chmod, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { EnrolledProxy } from "@tributary/contract/admin-schema";
import { proofText, type ApiError, type ProxyProof } from "@tributary/contract/schema";
import { digestOf } from "./compare";
import type { Configuration } from "./configuration";
import { limitKeyOf } from "./network";
import { RateLimit } from "./rate-limit";
import type { EnrolmentFault, EnrolmentStore } from "./store/enrolment-store";

/** A code from the dashboard is good for this long. */
const CODE_MS = 86_400_000;
const CODE_BYTES = 20;
/** This many addresses are counted. */
const ADDRESSES_MAX = 10_000;
/** Of a digest of the public key. */
const ID_HEX_DIGITS = 16;
/** The author of the codes in the code file. */
const FILE_AUTHOR = "code file";

export interface EnrolmentOptions {
  store: EnrolmentStore;
  configuration: Pick<Configuration, "value">;
  nowMs: () => number;
  /** Holds a code that nobody has used yet, for proxies that can read the file. */
  codeFile: string;
  onProblem: (reason: string) => void;
}

const MESSAGES: Record<EnrolmentFault, string> = {
  codeExpired: "the enrolment code has expired: make a new one",
  codeMissing:
    "this proxy is not enrolled: give it a code in ORIGO_CODE, which an admin makes in the dashboard under Fleet",
  codeUsed: "the enrolment code was used already: each code is good for one proxy, so make a new one",
  keyRevoked:
    "an admin revoked this proxy: to enrol it again, delete proxy-key.pem in its DATA_DIR and give it a new code",
  nameTaken: "another proxy has this name: choose another PROXY_NAME, or revoke the other proxy",
  tooManyProxies: "this Origo has as many enrolled proxies as origo.proxiesMax allows: revoke some first",
  wrongCode: "the enrolment code is wrong: make a new one in the dashboard under Fleet",
};

export class Enrolment {
  readonly #guesses: RateLimit;
  /** Keys that are let in whatever others at their address do. */
  #known = new Set<string>();
  #revoked: readonly string[] = [];

  readonly #options: EnrolmentOptions;

  constructor(options: EnrolmentOptions) {
    this.#options = options;

    const { configuration } = options;
    this.#guesses = new RateLimit({
      limit: () => configuration.value("origo.loginFailuresPerAddress"),
      windowMs: () => 1000 * configuration.value("origo.loginWindowSec"),
      keysMax: ADDRESSES_MAX,
    });
  }

  /** Reads what other Origos decided, and sees to it that the code file holds an unused code. */
  async refresh(): Promise<void> {
    const all = await this.#options.store.all();
    this.#known = new Set(all.filter(({ revokedAtMs }) => revokedAtMs === null).map(({ id }) => id));
    this.#revoked = all.filter(({ revokedAtMs }) => revokedAtMs !== null).map(({ id }) => id);
    await this.#keepCodeFile();
  }

  get revokedIds(): readonly string[] {
    return this.#revoked;
  }

  list(): Promise<EnrolledProxy[]> {
    return this.#options.store.all();
  }

  /** Stores the digest of a code, of any purpose. */
  readonly addCode: EnrolmentStore["addCode"] = (...code) => this.#options.store.addCode(...code);

  async newCode(author: string): Promise<{ code: string; expiresAtMs: number }> {
    const nowMs = this.#options.nowMs();
    const [code, expiresAtMs] = [makeCode(), nowMs + CODE_MS];
    await this.#options.store.addCode(digestOf(code), author, nowMs, expiresAtMs);
    return { code, expiresAtMs };
  }

  /** False when no such proxy is enrolled. */
  async revoke(id: string): Promise<boolean> {
    const isRevoked = await this.#options.store.revoke(id, this.#options.nowMs());
    await this.refresh();
    return isRevoked;
  }

  /** Whether an admin may give this name to a proxy. */
  isFree(id: string, name: string): Promise<boolean> {
    return this.#options.store.isFree(id, name);
  }

  /** The id of a proxy that has proven its key for this `challenge`. Its address is counted when it fails. */
  async admit(
    { publicKey, signature, code }: ProxyProof,
    { name, challenge, address }: { name: string; challenge: string; address: string },
  ): Promise<{ id: string } | { error: ApiError }> {
    const { store, configuration, nowMs } = this.#options;
    const key = keyOf(publicKey);
    const id = createHash("sha256").update(publicKey).digest("hex").slice(0, ID_HEX_DIGITS);
    const who = limitKeyOf(address);
    if (!this.#known.has(id)) {
      const seconds = Math.ceil(this.#guesses.waitMs(who, nowMs()) / 1000);
      if (seconds > 0)
        return {
          error: { kind: "tooManyAttempts", message: `this address failed to enrol too often: wait ${seconds} s` },
        };
    }
    const isProven = key !== undefined && verify(null, proofText(challenge), key, Buffer.from(signature, "base64url"));
    if (!isProven) {
      this.#guesses.add(who, nowMs());
      return { error: { kind: "proofWrong", message: "publicKey: the signature does not prove the key" } };
    }
    const candidate = { id, name, publicKey, codeDigest: code === undefined ? undefined : digestOf(code) };
    const fault = await store.enrol(candidate, nowMs(), configuration.value("origo.proxiesMax"));
    if (fault !== undefined && !this.#known.has(id)) this.#guesses.add(who, nowMs());
    if (fault !== undefined) return { error: { kind: fault, message: `${name}: ${MESSAGES[fault]}` } };
    if (!this.#known.has(id)) {
      this.#known.add(id);
      await this.#keepCodeFile();
    }
    return { id };
  }

  async #keepCodeFile(): Promise<void> {
    const { store, codeFile, nowMs, onProblem } = this.#options;
    const code = (await readFile(codeFile, "utf8").catch(() => "")).trim();
    if (code !== "" && (await store.isUnused(digestOf(code)))) {
      await chmod(codeFile, 0o600).catch((error: Error) => onProblem(`${codeFile} stays readable: ${error.message}`));
      return;
    }
    const fresh = makeCode();
    await store.addCode(digestOf(fresh), FILE_AUTHOR, nowMs(), undefined);
    await writePrivately(codeFile, `${fresh}\n`).catch((error: Error) =>
      onProblem(`the code file ${codeFile} cannot be written: ${error.message}`),
    );
  }
}

const makeCode = (): string => randomBytes(CODE_BYTES).toString("base64url");

/** Undefined for anything but an Ed25519 key. */
function keyOf(publicKey: string): KeyObject | undefined {
  try {
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: publicKey }, format: "jwk" });
    // One key has one spelling, so it has one id.
    return key.export({ format: "jwk" }).x === publicKey ? key : undefined;
  } catch {
    return undefined;
  }
}

/** Writes a draft first and renames it, so that nobody reads half a code. */
async function writePrivately(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.new`;
  await rm(draft, { force: true });
  await writeFile(draft, text, { mode: 0o600 });
  await rename(draft, file);
}
