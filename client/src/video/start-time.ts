/** When a track begins on its own clock, in units of 1/90,000 s: subtitles of HLS refer to that. Pure. */

const PACKET_BYTES = 188;
const SYNC = 0x47;
const CLOCK_HZ = 90_000;

/** `beginning` holds the first bytes of the track. Undefined if they do not tell. */
export function startTicks(beginning: Buffer): number | undefined {
  return beginning[0] === SYNC ? ofTransportStream(beginning) : ofFragments(beginning);
}

/** The first presentation time (ISO/IEC 13818-1 §2.4.3.7). */
function ofTransportStream(bytes: Buffer): number | undefined {
  for (let at = 0; at + PACKET_BYTES <= bytes.length; at += PACKET_BYTES) {
    const isStart = bytes[at] === SYNC && (bytes[at + 1]! & 0x40) !== 0;
    const control = bytes[at + 3]! & 0x30;
    if (!isStart || control === 0x20) continue;
    const payload = bytes.subarray(at + 4 + (control === 0x30 ? 1 + bytes[at + 4]! : 0), at + PACKET_BYTES);
    const isMedia = payload.length >= 14 && payload.readUIntBE(0, 3) === 1 && (payload[3]! & 0xc0) === 0xc0;
    if (isMedia && (payload[7]! & 0x80) !== 0) return ticksAt(payload, 9);
  }
  return undefined;
}

function ticksAt(bytes: Buffer, at: number): number {
  const high = (bytes[at]! >> 1) & 7;
  return high * 2 ** 30 + (bytes.readUInt16BE(at + 1) >> 1) * 2 ** 15 + (bytes.readUInt16BE(at + 3) >> 1);
}

/** The first decoding time over the track's time scale (ISO/IEC 14496-12 §8.4.2, §8.8.12). */
function ofFragments(bytes: Buffer): number | undefined {
  const [mdhd, tfdt] = [bytes.indexOf("mdhd") + 4, bytes.indexOf("tfdt") + 4];
  if (mdhd < 8 || tfdt < 8 || bytes.length < Math.max(mdhd + 24, tfdt + 12)) return undefined;
  const timescale = bytes.readUInt32BE(mdhd + (bytes[mdhd] === 1 ? 20 : 12));
  const time = bytes[tfdt] === 1 ? Number(bytes.readBigUInt64BE(tfdt + 4)) : bytes.readUInt32BE(tfdt + 4);
  return timescale > 0 ? Math.round((time * CLOCK_HZ) / timescale) : undefined;
}
