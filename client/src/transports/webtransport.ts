/** The address of a WebTransport session, the same in a browser and in Node. */
import { hexOf } from "@tributary/contract/tree";

/** The longest first message that fits the address of a session (docs/spec/transport.md §3). */
const FIRST_BYTES_MAX = 1024;

/** Adds the first message to the address. A longer message is left out and follows when the session is open. */
export function withFirst(url: string, first: Uint8Array | undefined): string {
  if (!first || first.length > FIRST_BYTES_MAX) return url;
  return `${url}?first=${hexOf(first)}`;
}
