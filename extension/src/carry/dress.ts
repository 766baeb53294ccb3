/**
 * Dress: gives constructed Responses what only the browser's own ones have: `url`, `type`, `redirected`, immutable
 * headers, and readers that reject with the reason of an abort. The prototypes are patched, so a Response has no
 * property of its own, and a script that replaces a method of all Responses meets these, too.
 */
import type { Natives } from "../page/natives";
import { patchProperty } from "../page/wrap";
import type { PageResponseHead } from "../shared/messages";

interface Shown {
  head: PageResponseHead;
  /** Why the body failed. */
  failure(): { reason: unknown } | null;
}

const READERS = ["arrayBuffer", "blob", "bytes", "formData", "json", "text"] as const;

const { parse } = JSON;
const shownOf = new WeakMap<Response, Shown>();
const immutable = new WeakSet<Headers>();

export function dress(response: Response, shown: Shown): Response {
  shownOf.set(response, shown);
  immutable.add(response.headers);
  return response;
}

/** Patches the prototypes, once in a page. */
export function dressResponses(natives: Natives): void {
  const { prototype } = natives.Response;
  const shown = (response: unknown): Shown | undefined => shownOf.get(response as Response);
  for (const [name, read] of [
    ["url", ({ url }) => url],
    ["type", ({ responseType }) => responseType],
    ["redirected", ({ redirected }) => redirected],
  ] as const satisfies [keyof Response, (head: PageResponseHead) => unknown][])
    patchProperty(prototype, name, "get", (target, response, args) => {
      const known = shown(response);
      return known === undefined ? natives.apply(target, response, args) : read(known.head);
    });
  patchProperty(prototype, "clone", "value", (target, response, args) => {
    const known = shown(response);
    const copy = natives.apply(target, response, args) as Response;
    return known === undefined ? copy : dress(copy, known);
  });
  const { text } = prototype;
  // Not by `catch` and `then`, which a page can replace.
  const read = async (known: Shown, target: () => unknown, response: unknown, args: unknown[]): Promise<unknown> => {
    try {
      return await natives.apply(target, response, args);
    } catch (error) {
      throw known.failure()?.reason ?? error;
    }
  };
  // A text that is no JSON throws where the stream is closed, and Chromium names that in the error.
  const readJson = async (known: Shown, response: unknown): Promise<unknown> =>
    parse((await read(known, text, response, [])) as string);
  for (const name of READERS)
    patchProperty(prototype, name, "value", (target, response, args) => {
      const known = shown(response);
      if (known === undefined || (response as Response).bodyUsed) return natives.apply(target, response, args);
      return name === "json" ? readJson(known, response) : read(known, target, response, args);
    });
  const fixed = natives.Response.error().headers;
  for (const name of ["append", "delete", "set"])
    patchProperty(natives.Headers.prototype, name, "value", (target, headers, args) =>
      natives.apply(target, immutable.has(headers as Headers) ? fixed : headers, args),
    );
}
