/** A playlist of a publication. Origo answers it, because the addresses in it lead on from Origo's. */
import { sha256 } from "@noble/hashes/sha2";
import { joined, objectId, objectNameOf } from "@tributary/contract/tree";
import type { ActiveDownload, ModeResult } from "../active-download";
import { DownloadError, faultOf, messageOf } from "../errors";

/** Nothing is handed on before all of it is checked. */
export async function playlist(download: ActiveDownload): Promise<ModeResult> {
  const { object } = download.object!;
  try {
    const bytes = await fetchAll(download, object.bytes);
    const hash = download.platform.hash ?? sha256;
    if (objectId(objectNameOf(bytes, hash)) !== objectId(object))
      throw new DownloadError("rootMismatch", `Origo's playlist is not the published ${objectId(object)}.`);
    const { range } = download.asked;
    download.setHead({ status: 200, headers: {}, totalBytes: bytes.length }, 0);
    download.write(range ? bytes.slice(range.start, range.end + 1) : bytes);
    return { kind: "complete" };
  } catch (error) {
    return download.signal.aborted ? { kind: "aborted" } : { kind: "failed", rejection: faultOf(error) };
  }
}

/** The whole body. It is not longer than one byte more than `bytesMax`. */
async function fetchAll(download: ActiveDownload, bytesMax: number): Promise<Uint8Array> {
  const { signal, platform, request } = download;
  const response = await platform
    .fetch(request.url, { signal, credentials: "omit", cache: "no-cache" })
    .catch((error: unknown) => {
      throw new DownloadError("origoUnreachable", `Origo does not give the playlist: ${messageOf(error)}`);
    });
  if (response.status !== 200)
    throw new DownloadError("origoUnreachable", `Origo does not give the playlist: it answered ${response.status}.`);
  const parts: Uint8Array[] = [];
  const reader = response.body?.getReader();
  for (let left = bytesMax + 1; reader && left > 0;) {
    const { done, value } = await reader.read();
    if (done) break;
    const part = value.subarray(0, left);
    parts.push(part);
    left -= part.length;
    download.addDirectBytes(part.length);
  }
  await reader?.cancel().catch(() => undefined);
  return joined(parts);
}
