/**
 * Hash: the part of the address after `#` says which page is open and in which state: `#/analysis?{"chart":"box",...}`.
 * The state is JSON in the address, so every view has a link. The page's schema checks it.
 */
import { useCallback, useMemo, useSyncExternalStore } from "react";
import type { z } from "zod";

export interface Place {
  /** The first word of the path, or `fleet` when the path is empty. */
  page: string;
  /** The rest of the path, decoded. */
  rest: string;
  /** The text after `?`, decoded. It may be empty. */
  state: string;
}

export function parseHash(hash: string): Place {
  const [path = "", ...state] = hash.replace(/^#?\/?/, "").split("?");
  const [page = "", ...rest] = path.split("/");
  return { page: page === "" ? "fleet" : page, rest: decoded(rest.join("/")), state: decoded(state.join("?")) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The link to a page in a state. */
export function linkTo(page: string, state?: unknown): string {
  return state === undefined ? `#/${page}` : `#/${page}?${encodeURIComponent(JSON.stringify(state))}`;
}

function subscribe(changed: () => void): () => void {
  window.addEventListener("hashchange", changed);
  return () => window.removeEventListener("hashchange", changed);
}

export function usePlace(): Place {
  const hash = useSyncExternalStore(subscribe, () => window.location.hash);
  return useMemo(() => parseHash(hash), [hash]);
}

/** Reads a state from JSON. Gives the defaults when the text is not JSON or does not fit the schema. */
export function parseState<S extends z.ZodTypeAny>(schema: S, text: string): z.output<S> {
  const parsed = schema.safeParse(jsonOf(text));
  return (parsed.success ? parsed.data : schema.parse({})) as z.output<S>;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text === "" ? "{}" : text);
  } catch {
    return {};
  }
}

/** The page's state in the address, and a function that changes parts of it without a new entry in the history. */
export function useHashState<S extends z.ZodTypeAny>(
  page: string,
  schema: S,
): [z.output<S>, (part: Partial<z.output<S>>) => void] {
  const { state: text } = usePlace();
  const state = useMemo(() => parseState(schema, text), [schema, text]);
  const change = useCallback(
    (part: Partial<z.output<S>>) => {
      const before = parseState(schema, parseHash(window.location.hash).state) as object;
      window.location.replace(linkTo(page, { ...before, ...part }));
    },
    [page, schema],
  );
  return [state, change];
}
