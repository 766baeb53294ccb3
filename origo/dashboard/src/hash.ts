/**
 * Hash: where in the dashboard one is, as the part of the address after `#`: `#/analysis?{"chart":"box",...}`.
 * A page's state is JSON in the address, so that every view can be linked, and is checked by the page's schema when
 * read.
 */
import { useCallback, useMemo, useSyncExternalStore } from "react";
import type { z } from "zod";

export interface Place {
  /** First word of the path, `fleet` when there is none. */
  page: string;
  /** The rest of the path, decoded. */
  rest: string;
  /** The text after `?`, decoded; empty when there is none. */
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

/** The link to a page in a state; a value that JSON leaves out is left out. */
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

/** What `schema` makes of JSON text; its defaults when the text is no JSON or does not fit. */
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

/**
 * The page's state in the address, and how to change parts of it. Changing replaces the entry in the browser's history.
 */
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
