/** The publisher's requests to Origo, signed with its key. What Origo refuses becomes a sentence with advice. */
import type { z } from "zod";
import {
  EnrolledPublisher,
  GrantsResponse,
  PendingPublication,
  PUBLICATION_LIMITS,
  PublicationResponse,
  PublicationsResponse,
  Release,
  type Manifest,
  type PublicationRow,
  type PublisherAction,
} from "@tributary/contract/publication-schema";
import { sign } from "@tributary/contract/signed";
import { Exit, STATUS } from "../exit";
import { ask, HttpFault, withRetries, type Answer, type Ask } from "./http";
import type { OwnKey } from "./key";

/** About a minute. */
const RETRIES = 8;
/** At the beginning nothing is lost yet. */
const RETRIES_FIRST = 1;
const JOSE = { "content-type": "application/jose" };

/** An action without what every action has. */
type Order = PublisherAction extends infer Action
  ? Action extends unknown
    ? Omit<Action, "key" | "atMs">
    : never
  : never;

export class OrigoLink {
  readonly url: string;
  readonly #key: OwnKey | undefined;
  /** Origo's clock less ours. */
  #aheadMs = 0;
  #hasAnswered = false;

  /** Without a key only what is public can be asked for. */
  constructor(url: string, key?: OwnKey) {
    this.url = origoUrl(url);
    this.#key = key;
  }

  async enrol(code: string, label: string): Promise<EnrolledPublisher> {
    return EnrolledPublisher.parse(await this.#act({ kind: "enrol", code, label }));
  }

  async list(): Promise<PublicationRow[]> {
    return shaped(PublicationsResponse, await this.#act({ kind: "list" })).publications;
  }

  /** Announces a revision. Nothing plays it before its release. */
  async announce(manifest: Manifest): Promise<PendingPublication> {
    const body = await sign(manifest, this.#key!.privateKey);
    if (body.length > PUBLICATION_LIMITS.manifestBytes)
      throw new Exit(
        STATUS.failed,
        `The signed list of ${manifest.files.length} files has ${body.length} bytes; at most ` +
          `${PUBLICATION_LIMITS.manifestBytes} are allowed. Publish fewer files, or give them shorter names.`,
      );
    const { text } = await this.#ask("/v1/publications", { method: "POST", headers: JOSE, body });
    return shaped(PendingPublication, jsonOf(text));
  }

  async grants(name: string, revision: number, objects: string[]): Promise<string[]> {
    return shaped(GrantsResponse, await this.#act({ kind: "grants", name, revision, objects })).grants;
  }

  async putPlaylist(object: string, body: Uint8Array): Promise<void> {
    await this.#ask(`/v1/objects/${object}`, {
      method: "PUT",
      headers: { "content-type": "application/octet-stream" },
      body,
    });
  }

  async release(name: string, revision: number): Promise<Release> {
    return shaped(Release, await this.#act({ kind: "release", name, revision }));
  }

  async unpublish(name: string): Promise<void> {
    await this.#act({ kind: "unpublish", name });
  }

  /** `query`: that of GET /v1/proxies. */
  async publication(key: string, name: string, query: string): Promise<PublicationResponse> {
    const { text } = await this.#ask(`/v1/publications/${key}/${name}${query}`, {});
    return shaped(PublicationResponse, jsonOf(text));
  }

  async #act(order: Order): Promise<unknown> {
    const send = async (): Promise<Answer> => {
      const { privateKey, publicKey: key } = this.#key!;
      const body = await sign({ ...order, key, atMs: Date.now() + this.#aheadMs }, privateKey);
      return this.#ask("/v1/publisher", { method: "POST", headers: JOSE, body });
    };
    const { text } = await send().catch((error: unknown) => {
      if (!(error instanceof HttpFault) || error.kind !== "clockWrong") throw error;
      const origoMs = Date.parse(error.headers["date"] ?? "");
      if (Number.isNaN(origoMs)) throw error;
      this.#aheadMs = origoMs - Date.now();
      return send();
    });
    return jsonOf(text);
  }

  async #ask(path: string, options: Ask): Promise<Answer> {
    const retries = this.#hasAnswered ? RETRIES : RETRIES_FIRST;
    try {
      const answer = await withRetries(retries, () => ask(`${this.url}${path}`, options));
      this.#hasAnswered = true;
      return answer;
    } catch (error) {
      if (error instanceof HttpFault && error.status !== 0) this.#hasAnswered = true;
      if (!(error instanceof HttpFault) || error.status !== 0) throw error;
      throw new Exit(STATUS.failed, `Origo ${sentence(error.message)} Check --origo ${this.url}, and try again later.`);
    }
  }
}

function origoUrl(given: string): string {
  if (!URL.canParse(given) || !/^https?:$/.test(new URL(given).protocol))
    throw new Exit(STATUS.usage, `--origo ${given} is no address with http or https.`);
  return given.replace(/\/+$/, "");
}

function shaped<T extends z.ZodTypeAny>(shape: T, value: unknown): z.output<T> {
  const parsed = shape.safeParse(value);
  if (parsed.success) return parsed.data as z.output<T>;
  const { path, message } = parsed.error.issues[0]!;
  throw new Exit(
    STATUS.failed,
    `Origo's answer is not understood: ${path.join(".")}: ${message}. Is it of another version?`,
  );
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const sentence = (text: string): string => text.replace(/[^.!?]$/, "$&.");

const ENROL = "Add it with --code CODE.";
/** What to do about a refusal. */
const ADVICE: Record<string, string> = {
  codeExpired: ENROL,
  codeMissing: ENROL,
  codeUsed: ENROL,
  wrongCode: ENROL,
  keyUnknown: ENROL,
  keyRevoked: "Origo's operator has withdrawn this key, and can enrol another one (--key FILE --code CODE).",
  clockWrong: "Set this machine's clock.",
  noRoom: "Ask Origo's operator for room: proxies with --library and a larger limit.",
  objectsMissing: "Run the same command again to go on.",
  notFound: "`tributary list` shows what you have published.",
  quotaExceeded: "Withdraw a publication (tributary unpublish NAME), or ask Origo's operator for a larger quota.",
  revisionOld: "Another machine publishes under this name with the same key. Run the command again when it is done.",
  tooManyPublications: "Withdraw a publication (tributary unpublish NAME), or ask Origo's operator.",
};

/** What a person reads of a refusal by Origo. Other errors stay what they are. */
export function explained(error: unknown): unknown {
  if (!(error instanceof HttpFault)) return error;
  const advice = ADVICE[error.kind];
  return new Exit(STATUS.failed, `Origo: ${sentence(error.message)}${advice === undefined ? "" : ` ${advice}`}`);
}
