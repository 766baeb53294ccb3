/**
 * Dress: gives constructed Responses what only the browser's own ones have: `url`, `type`, `redirected`, immutable
 * headers, and readers that reject with the reason of an abort. The prototypes are patched, so a Response has no
 * property of its own, and a script that replaces a method of all Responses meets these, too.
 */
import { patchProperty } from "../page/wrap";
import type { PageResponseHead } from "../shared/messages";
import { apply, firstOf, globalOf, memberOf, Notes, options, parseJson, staticOf } from "../shared/primordials";
import { responseOf } from "../shared/platform";
import { bodyUsedOf } from "../shared/late-platform";

interface Shown {
  head: PageResponseHead;
  /** Why the body failed. */
  failure(): { reason: unknown } | null;
}

/** What each property tells of the head. */
const TOLD = options({ url: "url", type: "responseType", redirected: "redirected" } as const);
const READERS = ["arrayBuffer", "blob", "bytes", "formData", "json", "text"] as const;

const OwnResponse = globalOf("Response");
const text = memberOf("Response", "text");
const error = staticOf("Response", "error") as typeof Response.error;
const shownOf = new Notes<Response, Shown>();
const immutable = new Notes<Headers, true>();

export function dress(response: Response, shown: Shown): Response {
  shownOf.set(response, shown);
  immutable.set(responseOf(response).headers, true);
  return response;
}

/** Patches the prototypes, once in a page. */
export function dressResponses(): void {
  const { prototype } = OwnResponse;
  const { prototype: ofHeaders } = globalOf("Headers");
  const shown = (response: unknown): Shown | undefined => shownOf.get(response as Response);
  for (const name in TOLD)
    patchProperty(prototype, name, "get", (target, response, args) => {
      const known = shown(response);
      return known === undefined ? apply(target, response, args) : known.head[TOLD[name as keyof typeof TOLD]];
    });
  patchProperty(prototype, "clone", "value", (target, response, args) => {
    const known = shown(response);
    const copy = apply(target, response, args) as Response;
    return known === undefined ? copy : dress(copy, known);
  });
  // Not by `catch` and `then`, which a page can replace.
  const read = async (known: Shown, target: () => unknown, response: unknown, args: unknown[]): Promise<unknown> => {
    try {
      return await apply(target, response, args);
    } catch (failure) {
      throw known.failure()?.reason ?? failure;
    }
  };
  // A text that is no JSON throws where the stream is closed, and Chromium names that in the error.
  const readJson = async (known: Shown, response: unknown): Promise<unknown> =>
    parseJson((await read(known, text as () => unknown, response, [])) as string);
  firstOf(READERS, (name) =>
    patchProperty(prototype, name, "value", (target, response, args) => {
      const known = shown(response);
      if (known === undefined || bodyUsedOf(response as Response)) return apply(target, response, args);
      return name === "json" ? readJson(known, response) : read(known, target, response, args);
    }),
  );
  const fixed = responseOf(apply(error, OwnResponse, []) as Response).headers;
  firstOf(["append", "delete", "set"], (name) =>
    patchProperty(ofHeaders, name, "value", (target, headers, args) =>
      apply(target, immutable.get(headers as Headers) === true ? fixed : headers, args),
    ),
  );
}
