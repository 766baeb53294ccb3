/** What WebTransport's addresses are like, in browsers and in Node. */
import { hexOf } from "../bytes";

/** What the proxy takes along with a session's request: docs/spec/transport.md §3. */
const FIRST_BYTES_MAX = 1024;

/** The address that brings the first message along; one that is too long comes when the session is open. */
export function withFirst(url: string, first: Uint8Array | undefined): string {
  if (!first || first.length > FIRST_BYTES_MAX) return url;
  return `${url}?first=${hexOf(first)}`;
}
