/** Grants: whether Origo allows an upload of an object to this proxy (publications.md §1). */
import type { Rejection, RejectionKind } from "@tributary/contract";
import { GrantClaims } from "@tributary/contract/publication-schema";
import { SKEW_SEC, type OrigoKeys } from "../origo-keys";

/** Why the grant does not allow it; undefined if it does. `authorization`: the value of the header. */
export function grantFault(keys: OrigoKeys, authorization: string | undefined, id: string): Rejection | undefined {
  const grant = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
  if (grant === undefined)
    return refused("grantMissing", "Uploads need a grant of this proxy's Origo: Authorization: Bearer GRANT.");
  const claims = keys.read(grant, GrantClaims);
  if (!claims) return refused("grantRefused", "The grant is not one that this proxy's Origo signed.");
  if (!keys.isForThis(claims)) return refused("grantRefused", "The grant is for other proxies.");
  if (claims.object !== id) return refused("grantRefused", `The grant is for the object ${claims.object}, not ${id}.`);
  if (keys.nowMs() / 1000 - claims.exp > SKEW_SEC)
    return refused("grantExpired", "The grant has expired: ask Origo for another one.");
  return undefined;
}

const refused = (kind: RejectionKind, message: string): Rejection => ({ kind, message });
