/**
 * Upload pace: ends an upload that brings too little, so that nobody holds a place among the uploads with a byte now
 * and then. Only the time counts for which the proxy waits for the client.
 */
import { egressError } from "../egress/error";

/** So many bytes in each so long a time. */
export interface Pace {
  bytes: number;
  ms: number;
}

/** Any line that can play a video brings a block in this time. */
export const UPLOAD_PACE: Pace = { bytes: 16_384, ms: 30_000 };

/** Hands on the pieces. Throws an `EgressError` when they come too slowly. */
export async function* atPace(body: AsyncIterable<Uint8Array>, { bytes, ms }: Pace): AsyncGenerator<Uint8Array> {
  const pieces = body[Symbol.asyncIterator]();
  let [gotBytes, waitedMs] = [0, 0];
  for (;;) {
    const askedMs = performance.now();
    const next = await within(ms - waitedMs, pieces.next());
    if (!next) throw tooSlow(gotBytes, bytes, ms);
    if (next.done) return;
    waitedMs += performance.now() - askedMs;
    gotBytes += next.value.length;
    if (gotBytes >= bytes) [gotBytes, waitedMs] = [0, 0];
    yield next.value;
  }
}

/** Undefined when it takes longer. */
async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, ms, undefined)));
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function tooSlow(got: number, limit: number, ms: number): Error {
  const message = `The upload brought ${got} bytes in ${ms / 1000} s, and must bring ${limit}. It can go on later.`;
  return egressError("uploadTooSlow", message, { got, limit });
}
