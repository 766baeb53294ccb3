/** The errors that the library throws or rejects with. */
import type { Rejection, RejectionKind } from "@tributary/contract";

/** A chain of causes may be a ring. */
const CAUSES_MAX = 8;

/** The arguments of a call can never work. `get` throws it before it uses the network. */
export class RequestError extends TypeError {
  override readonly name = "RequestError";
  constructor(
    /** The argument at fault: `url`, `mode`, `connections`, `range`, ... */
    readonly what: string,
    readonly got: unknown,
    readonly allowed: string,
  ) {
    super(`${what} is not valid: got ${withoutPasswords(show(got))}, allowed: ${allowed}.`);
  }
}

/** A download failed. `kind` is for programs, `message` for people. The body stream and the head end with it. */
export class DownloadError extends Error {
  override readonly name = "DownloadError";
  constructor(
    readonly kind: RejectionKind,
    message: string,
    /** The value at fault, if it is a number. For the kind `otherStatus` it is the status. */
    readonly got?: number,
  ) {
    super(message);
  }

  static of({ kind, message, got }: Rejection): DownloadError {
    return new DownloadError(kind, message, got);
  }
}

/** A session was refused, so an immediate second try cannot help. */
export class Refused extends Error {}

/** What failed, as data. An error that is not a DownloadError is a fault of the proxy. */
export function faultOf(error: unknown): Rejection {
  const { kind, got } = error instanceof DownloadError ? error : { kind: "proxyFailed" as const, got: undefined };
  return { kind, message: messageOf(error), ...(got === undefined ? {} : { got }) };
}

export function abortError(reason: unknown): Error {
  return reason instanceof Error
    ? reason
    : new DOMException(reason === undefined ? "The download was aborted." : String(reason), "AbortError");
}

/** An error of any realm: Node's sockets make theirs outside the context in which a library's user may run it. */
interface AnyError {
  readonly name?: unknown;
  readonly message: string;
  readonly code?: unknown;
  readonly cause?: unknown;
}

/** A thrown error and what caused it, the outermost first. Empty if the value is no error. */
export function chainOf(error: unknown): AnyError[] {
  const chain: AnyError[] = [];
  for (let next = error; isError(next) && chain.length < CAUSES_MAX; next = next.cause) chain.push(next);
  return chain;
}

function isError(value: unknown): value is AnyError {
  return typeof value === "object" && value !== null && "message" in value && typeof value.message === "string";
}

/** The message of any thrown value. It adds the cause that `fetch` hides behind "fetch failed". */
export function messageOf(error: unknown): string {
  const [first, cause] = chainOf(error);
  if (!first) return String(error);
  return cause ? `${first.message} (${cause.message || String(cause.code ?? cause.name)})` : first.message;
}

function show(value: unknown): string {
  const text =
    typeof value === "string"
      ? JSON.stringify(value)
      : typeof value === "object"
        ? JSON.stringify(value)
        : String(value);
  return text !== undefined && text.length > 200 ? `${text.slice(0, 200)}...` : String(text);
}

/** The text without the user name and password of each address in it. */
export function withoutPasswords(text: string): string {
  return text.replace(/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/?#"']*@/gi, "$1***@");
}
