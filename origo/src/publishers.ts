/**
 * Publishers: who may publish. A publisher has an Ed25519 key; a one-time code that an admin makes lets a new key in.
 * Each request is signed (contract/signed.ts). What a stranger sends costs a look at its key, and a check of the
 * signature if it names an enrolled one.
 */
import { randomBytes } from "node:crypto";
import { PublisherKey, PublisherAction, type EnrolledPublisher } from "@tributary/contract/publication-schema";
import { open, SignatureWrong } from "@tributary/contract/signed";
import type { z } from "zod";
import { digestOf } from "./compare";
import type { Configuration } from "./configuration";
import { Refusal } from "./http";
import { limitKeyOf } from "./network";
import { RateLimit } from "./rate-limit";
import type { PublisherFault, PublisherStore, StoredPublisher } from "./store/publisher-store";

/** A code for a publisher begins with this, so that it is not mistaken for one for a proxy. */
export const PUBLISHER_CODE = "publisher-";
const CODE_BYTES = 20;
const CODE_MS = 86_400_000;
/** How far a publisher's clock may be off. */
const CLOCK_MS_MAX = 300_000;
const WINDOW_MS = 10_000;
const KEYS_MAX = 10_000;
/** The store is asked for keys that are not known this often at most. */
const LOOK_MS = 1000;
/** What a key that is not enrolled may send. */
const STRANGERS_BYTES_MAX = 4096;

export interface PublishersOptions {
  store: PublisherStore;
  addCode: (digest: string, author: string, nowMs: number, expiresAtMs: number) => Promise<void>;
  configuration: Pick<Configuration, "value">;
  nowMs: () => number;
}

const MESSAGES: Record<PublisherFault, string> = {
  codeExpired: "the code has expired: make a new one",
  codeMissing: "this publisher needs a code, which an admin makes in the dashboard under Library",
  codeUsed: "the code was used already: each code is good for one publisher, so make a new one",
  keyRevoked: "an admin revoked this publisher: use a new key and a new code",
  tooManyPublishers: "this Origo has as many publishers as origo.publishersMax allows: revoke some first",
  wrongCode: "the code is wrong: make a new one in the dashboard under Library",
};

export class Publishers {
  #known = new Map<string, StoredPublisher>();
  /** When the store was asked for a key that was not known. */
  #lookedMs = -Infinity;
  readonly #guesses: RateLimit;
  readonly #requests: RateLimit;

  readonly #options: PublishersOptions;

  constructor(options: PublishersOptions) {
    this.#options = options;

    const { configuration } = options;
    this.#guesses = new RateLimit({
      limit: () => configuration.value("origo.loginFailuresPerAddress"),
      windowMs: () => 1000 * configuration.value("origo.loginWindowSec"),
      keysMax: KEYS_MAX,
    });
    this.#requests = new RateLimit({
      limit: () => configuration.value("origo.publishRequestsPerKey"),
      windowMs: () => WINDOW_MS,
      keysMax: KEYS_MAX,
    });
  }

  /** Reads what other Origos decided. */
  async refresh(): Promise<void> {
    this.#known = new Map((await this.#options.store.all()).map((publisher) => [publisher.key, publisher]));
  }

  list(): StoredPublisher[] {
    return [...this.#known.values()];
  }

  labelOf(key: string): string {
    return this.#known.get(key)?.label ?? "";
  }

  quotaOf(key: string): number {
    return this.#known.get(key)?.quotaBytes ?? this.#options.configuration.value("origo.publisherBytes");
  }

  async newCode(author: string): Promise<{ code: string; expiresAtMs: number }> {
    const nowMs = this.#options.nowMs();
    const code = PUBLISHER_CODE + randomBytes(CODE_BYTES).toString("base64url");
    await this.#options.addCode(digestOf(code), author, nowMs, nowMs + CODE_MS);
    return { code, expiresAtMs: nowMs + CODE_MS };
  }

  async addOwn(key: string, label: string): Promise<void> {
    await this.#options.store.addOwn(key, label, this.#options.nowMs());
    await this.refresh();
  }

  /** False when no such key is enrolled. */
  async revoke(key: string): Promise<boolean> {
    const isRevoked = await this.#options.store.revoke(key, this.#options.nowMs());
    await this.refresh();
    return isRevoked;
  }

  /** False when no such key is enrolled. Null: as the setting says. */
  async setQuota(key: string, quotaBytes: number | null): Promise<boolean> {
    const isSet = await this.#options.store.setQuota(key, quotaBytes);
    await this.refresh();
    return isSet;
  }

  /** A request of a publisher, or of one that wants to become one. Throws a Refusal. */
  async readAction(text: string): Promise<PublisherAction> {
    const action = await this.#read(text, PublisherAction);
    if (action.kind !== "enrol" && !(await this.#knows(action.key))) throw unknownKey(action.key);
    const nowMs = this.#options.nowMs();
    const offMs = action.atMs - nowMs;
    if (Math.abs(offMs) <= CLOCK_MS_MAX) return action;
    const message =
      `atMs: the request is of ${timeOf(action.atMs)}, but Origo's clock says ${timeOf(nowMs)}: ` +
      "take the time from the Date of Origo's answers, or set the clock that is wrong";
    throw new Refusal(400, { kind: "clockWrong", field: "atMs", message, got: action.atMs, limit: CLOCK_MS_MAX });
  }

  /** What an enrolled publisher signed. Throws a Refusal. */
  async readSigned<T extends z.ZodTypeAny>(text: string, shape: T): Promise<z.output<T>> {
    const key = keyIn(text);
    if (key !== undefined && !(await this.#knows(key))) throw unknownKey(key);
    return this.#read(text, shape);
  }

  async enrol(
    { key, label, code }: { key: string; label: string; code: string },
    address: string,
  ): Promise<EnrolledPublisher> {
    const { store, configuration, nowMs } = this.#options;
    const who = limitKeyOf(address);
    const isKnown = this.#known.has(key);
    const seconds = Math.ceil(this.#guesses.waitMs(who, nowMs()) / 1000);
    if (!isKnown && seconds > 0) {
      const message = `this address failed to enrol too often: wait ${seconds} s`;
      throw new Refusal(429, { kind: "tooManyAttempts", message }, { "Retry-After": String(seconds) });
    }
    const codeDigest = code.startsWith(PUBLISHER_CODE) ? digestOf(code) : undefined;
    const fault =
      code !== "" && codeDigest === undefined && !isKnown
        ? "wrongCode"
        : await store.enrol({ key, label, codeDigest }, nowMs(), configuration.value("origo.publishersMax"));
    if (fault !== undefined) {
      if (!isKnown) this.#guesses.add(who, nowMs());
      throw new Refusal(403, { kind: fault, message: MESSAGES[fault] });
    }
    await this.refresh();
    return { key, label, quotaBytes: this.quotaOf(key) };
  }

  /** The key may have been let in at another Origo a moment ago. */
  async #knows(key: string): Promise<boolean> {
    const nowMs = this.#options.nowMs();
    if (!this.#known.has(key) && Math.abs(nowMs - this.#lookedMs) >= LOOK_MS) {
      this.#lookedMs = nowMs;
      await this.refresh();
    }
    return this.#known.has(key);
  }

  async #read<T extends z.ZodTypeAny>(text: string, shape: T): Promise<z.output<T>> {
    const key = keyIn(text);
    if (key === undefined) {
      const message = "the body must be a compact JWS of JSON that holds the publisher's key";
      throw new Refusal(400, { kind: "badRequest", message });
    }
    const publisher = this.#known.get(key);
    if (publisher === undefined && text.length > STRANGERS_BYTES_MAX) throw unknownKey(key);
    if (publisher !== undefined && publisher.revokedAtMs !== null)
      throw new Refusal(403, { kind: "keyRevoked", message: MESSAGES.keyRevoked });
    const seconds = Math.ceil(this.#requests.waitMs(key, this.#options.nowMs()) / 1000);
    if (seconds > 0) {
      const message = `the publisher ${key} sends too many requests: wait ${seconds} s`;
      throw new Refusal(429, { kind: "tooManyAttempts", message }, { "Retry-After": String(seconds) });
    }
    const message = (await open(text, key, shape).catch(refuseUnreadable)) as { key: string };
    // Only the holder of a key can use up its requests.
    this.#requests.add(key, this.#options.nowMs());
    if (message.key !== key)
      throw new Refusal(400, { kind: "badField", field: "key", message: "key: the message names two keys" });
    return message;
  }
}

const timeOf = (ms: number): string => (ms <= 8.64e15 ? new Date(ms).toISOString() : String(ms));

const unknownKey = (key: string): Refusal =>
  new Refusal(403, { kind: "keyUnknown", message: `the publisher ${key} is not enrolled: ${MESSAGES.codeMissing}` });

function refuseUnreadable(error: Error): never {
  if (error instanceof SignatureWrong) throw new Refusal(403, { kind: "signatureWrong", message: error.message });
  throw new Refusal(400, { kind: "badField", message: error.message });
}

/** The key that an unchecked JWS claims, without parsing the whole message. Undefined: it names none. */
function keyIn(text: string): string | undefined {
  const payload = Buffer.from(text.split(".", 2)[1] ?? "", "base64url").toString("latin1");
  const key = /"key"\s*:\s*"([^"\\]{1,64})"/.exec(payload)?.[1];
  return PublisherKey.safeParse(key).success ? key : undefined;
}
