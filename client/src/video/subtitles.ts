/** Joins WebVTT files that follow one another into one, on the clock of the film (RFC 8216 §3.5). Pure. */

interface Cue {
  startMs: number;
  endMs: number;
  settings: string;
  text: string;
}

const TIME = String.raw`(?:(\d{2,}):)?(\d{2}):(\d{2})[.,](\d{3})`;
const TIMING = new RegExp(String.raw`^\s*${TIME}\s+-->\s+${TIME}(.*)$`);
const CLOCK_MODULUS = 2 ** 33;
const TICKS_PER_MS = 90;

/**
 * `text` holds whole files one after the other. `filmTicks` is when the film begins on the clock of MPEG, in units of
 * 1/90,000 s. A cue that several files repeat is kept once.
 */
export function joinSubtitles(text: string, filmTicks: number | undefined): string {
  const cues = new Map<string, Cue>();
  const styles = new Set<string>();
  for (const file of text.replaceAll(/\r\n?/g, "\n").split(/^\uFEFF?(?=WEBVTT\b)/m)) {
    const [header = "", ...blocks] = file.split(/\n{2,}/);
    const shiftMs = shiftOf(header, filmTicks);
    for (const block of blocks) {
      if (/^(STYLE|REGION)\b/.test(block)) styles.add(block.trimEnd());
      const cue = cueOf(block, shiftMs);
      if (cue && cue.endMs > 0) cues.set(JSON.stringify(cue), cue);
    }
  }
  const sorted = [...cues.values()].sort((a, b) => a.startMs - b.startMs);
  return `${["WEBVTT", ...styles, ...sorted.map(format)].join("\n\n")}\n`;
}

/** What to add to the times of a file. Without a map they count from the film's beginning. */
function shiftOf(header: string, filmTicks: number | undefined): number {
  const map = /^X-TIMESTAMP-MAP=(.*)$/m.exec(header)?.[1] ?? "";
  const ticks = /MPEGTS:(\d+)/.exec(map)?.[1];
  const local = new RegExp(`LOCAL:${TIME}`).exec(map);
  if (ticks === undefined || !local || filmTicks === undefined) return 0;
  const ahead = (Number(ticks) - filmTicks) % CLOCK_MODULUS;
  const nearest = ahead - CLOCK_MODULUS * Math.round(ahead / CLOCK_MODULUS);
  return nearest / TICKS_PER_MS - msOf(local.slice(1, 5));
}

function cueOf(block: string, shiftMs: number): Cue | undefined {
  const lines = block.split("\n");
  const at = lines.findIndex((line) => line.includes("-->"));
  const timing = TIMING.exec(lines[at] ?? "");
  if (!timing) return undefined;
  return {
    startMs: Math.max(0, Math.round(msOf(timing.slice(1, 5)) + shiftMs)),
    endMs: Math.round(msOf(timing.slice(5, 9)) + shiftMs),
    settings: timing[9]!.trimEnd(),
    text: lines
      .slice(at + 1)
      .join("\n")
      .trimEnd(),
  };
}

function msOf([hours = "0", minutes, seconds, ms]: (string | undefined)[]): number {
  return ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000 + Number(ms);
}

function format({ startMs, endMs, settings, text }: Cue): string {
  return `${clock(startMs)} --> ${clock(endMs)}${settings}\n${text}`;
}

/** `01:02:03.004` */
function clock(ms: number): string {
  const two = (value: number): string => String(Math.floor(value)).padStart(2, "0");
  const fraction = String(ms % 1000).padStart(3, "0");
  return `${two(ms / 3_600_000)}:${two((ms / 60_000) % 60)}:${two((ms / 1000) % 60)}.${fraction}`;
}
