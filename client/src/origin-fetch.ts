/**
 * Asks an origin directly. A platform may bring its own way to do so. The default is `fetch`, which follows redirects,
 * decodes content codings and hides the encoded length, as browsers do.
 */
import { headersFor, headOf } from "./modes/http";
import type { AskOrigin } from "./origin";
import type { Platform } from "./platform";

export function askerOf({ askOrigin, fetch }: Platform): AskOrigin {
  return (
    askOrigin ??
    (async ({ url, range, headers, cache, redirect, signal }) => {
      const sent = { ...headersFor(range), ...headers };
      const init = { headers: sent, credentials: "omit", cache, redirect: redirect ?? "follow", signal } as const;
      const response = await fetch(url, init);
      return { head: headOf(response), body: piecesOf(response) };
    })
  );
}

async function* piecesOf({ body }: Response): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader();
  while (reader) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}
