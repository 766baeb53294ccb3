/**
 * Api: calls Origo's HTTP API. An answer that is not a success becomes a Fault with Origo's message. Answers come from
 * the server that serves this page, which uses the same schemas, so they are not checked again.
 */
import type { ApiError } from "@tributary/contract/schema";

/** Origo's own error, or what the page says when there is none: no answer, or an answer without an error in it. */
type PageError = ApiError | { kind: "unreachable" | "unknown"; message: string; field?: undefined };

export class Fault extends Error {
  constructor(
    readonly status: number,
    readonly error: PageError,
  ) {
    super(error.message);
  }
}

let csrfToken = "";

/** Sets the token that every change must carry. It comes with the login. */
export function setCsrfToken(token: string): void {
  csrfToken = token;
}

async function request<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = method === "GET" ? {} : { "x-csrf-token": csrfToken };
  if (body !== undefined) headers["content-type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  } catch {
    throw new Fault(0, { kind: "unreachable", message: "Origo does not answer. Check that it is running." });
  }
  const answer = (await response.json().catch(() => undefined)) as (T & { error?: ApiError }) | undefined;
  if (!response.ok)
    throw new Fault(
      response.status,
      answer?.error ?? { kind: "unknown", message: `Origo answered ${response.status}` },
    );
  return answer as T;
}

export const api = {
  get: <T>(path: string): Promise<T> => request<T>("GET", path),
  post: <T>(path: string, body: unknown): Promise<T> => request<T>("POST", path, body),
  put: <T>(path: string, body: unknown): Promise<T> => request<T>("PUT", path, body),
  patch: <T>(path: string, body: unknown): Promise<T> => request<T>("PATCH", path, body),
  remove: <T>(path: string): Promise<T> => request<T>("DELETE", path),
};

/** Adds a value as the last part of `path`. */
export const under = (path: string, value: string): string => `${path}/${encodeURIComponent(value)}`;

/** Lets the person save a file. */
export function saveFile(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
