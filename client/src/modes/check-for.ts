/** Chooses who checks the blocks of a chunk over HTTP. */
import type { ByteRange } from "@tributary/contract";
import type { BlockCheck, CheckEvents } from "./block-check";
import { HttpAgreement } from "./http-agreement";
import type { HttpTask } from "./http-chunks";
import { HttpProofs } from "./http-proofs";

/** Checks the chunk with the signed digests of an object, or with what the proxies agree on. */
export function checkFor(
  { download, proxies }: HttpTask,
  range: ByteRange | undefined,
  name: string,
  events: CheckEvents,
): BlockCheck {
  if (download.object) return new HttpProofs(download, proxies, range, events);
  return new HttpAgreement(download, proxies, range, name, events);
}
