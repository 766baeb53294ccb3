/** Requests of the publisher to Origo and to proxies. A failure is an HttpFault with the kind that the server named. */
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { retryAfterMs } from "@tributary/contract";
import { request, type Dispatcher } from "undici";
import { messageOf } from "../../errors";
import { stopped } from "../signals";

/** While a body is sent, each piece that the server takes begins this time anew. */
const SILENCE_MS = 60_000;
const BACKOFF_MS = 500;
const BACKOFF_MS_MAX = 10_000;
const MESSAGE_CHARS_MAX = 300;
/** Only a person can make room. */
const FULL_KINDS = ["diskFull", "libraryFull", "noLibrary", "noRoom", "storageFull"];

export interface Ask {
  method?: Dispatcher.HttpMethod;
  headers?: Record<string, string>;
  body?: string | Readable | Uint8Array;
}

export interface Answer {
  status: number;
  headers: Record<string, string>;
  text: string;
}

export class HttpFault extends Error {
  override readonly name = "HttpFault";
  constructor(
    message: string,
    /** The server's word for the fault. Empty if it has none. */
    readonly kind: string,
    /** 0: there was no answer. */
    readonly status: number,
    readonly headers: Answer["headers"] = {},
  ) {
    super(message);
  }

  /** The same request can work soon. */
  get isTransient(): boolean {
    if (FULL_KINDS.includes(this.kind)) return false;
    return this.status === 0 || [408, 425, 429, 500, 502, 503, 504].includes(this.status);
  }
}

/** Streams the body of a good answer; otherwise throws an HttpFault. */
export async function open(url: string, { method = "GET", headers, body }: Ask = {}): Promise<Dispatcher.ResponseData> {
  const options = { method, headersTimeout: SILENCE_MS, bodyTimeout: SILENCE_MS, signal: stopped };
  try {
    const response = await request(url, {
      ...options,
      ...(headers && { headers }),
      ...(body !== undefined && { body }),
    });
    if (response.statusCode < 300) return response;
    const text = await response.body.text().catch(() => "");
    throw faultOf(url, { status: response.statusCode, headers: flat(response.headers), text });
  } catch (error) {
    stopped.throwIfAborted();
    if (error instanceof HttpFault) throw error;
    throw new HttpFault(`${new URL(url).host} does not answer: ${reasonOf(error)}`, "", 0);
  }
}

export async function ask(url: string, options: Ask = {}): Promise<Answer> {
  const { statusCode: status, headers, body } = await open(url, options);
  try {
    return { status, headers: flat(headers), text: await body.text() };
  } catch (error) {
    stopped.throwIfAborted();
    throw new HttpFault(`${new URL(url).host} broke off its answer: ${reasonOf(error)}`, "", 0);
  }
}

/** Tries again after a while as long as it can help. `retries`: how often in a row. */
export async function withRetries<T>(retries: number, work: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof HttpFault) || !error.isTransient || tries >= retries) throw error;
      await pause(tries, error);
    }
  }
}

export async function pause(tries: number, fault?: HttpFault): Promise<void> {
  const asked = retryAfterMs({ headers: fault?.headers ?? {} }, Date.now()) ?? 0;
  const ms = Math.min(BACKOFF_MS_MAX, BACKOFF_MS * 2 ** tries) * (0.75 + Math.random() / 2);
  await wait(Math.max(ms, Math.min(asked, BACKOFF_MS_MAX)));
}

/** Rejects at the first signal. */
export async function wait(ms: number): Promise<void> {
  await sleep(ms, undefined, { signal: stopped }).catch(() => stopped.throwIfAborted());
}

function flat(headers: Dispatcher.ResponseData["headers"]): Answer["headers"] {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value].flat()[0] ?? ""]));
}

function faultOf(url: string, { status, headers, text }: Answer): HttpFault {
  const body = parsed(text);
  const { kind = "", message } = (body?.error ?? body ?? {}) as { kind?: string; message?: string };
  const said = message ?? text.trim().slice(0, MESSAGE_CHARS_MAX);
  const fallback = `${new URL(url).host} answered ${status}${said === "" ? "" : `: ${said}`}`;
  return new HttpFault(message ?? fallback, String(kind), status, headers);
}

function parsed(text: string): { error?: object } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return messageOf(error) || code;
}
