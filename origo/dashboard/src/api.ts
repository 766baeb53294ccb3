/**
 * Api: Origo's HTTP API as the page calls it. An answer that is no success becomes a Fault with Origo's own words.
 * Answers come from the server that serves this page and are typed by the schemas that it checks with; they are not
 * parsed again.
 */
import type { ApiError } from "@tributary/contract/schema";

export class Fault extends Error {
  constructor(
    readonly status: number,
    readonly error: ApiError,
  ) {
    super(error.message);
  }
}

let csrfToken = "";

/** The token that every change must carry; it comes with the login. */
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
    throw new Fault(0, { kind: "unreachable", message: "Origo does not answer. Is it running?" });
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

/** `path` with one value as its last part. */
export const under = (path: string, value: string): string => `${path}/${encodeURIComponent(value)}`;

/** Hands the person a file. */
export function saveFile(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
