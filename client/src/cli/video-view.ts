/** Formats the live line of a whole video. No I/O. */
import type { LiveStats } from "../api";
import type { VideoProgressReport } from "../video";
import { bar, clock, fitted, formatBytes, shares } from "./view";

/** At most `columns` characters: the bar, segments, bytes, the rate, the time left, and each source's share. */
export function videoLine(report: VideoProgressReport, live: LiveStats, columns: number): string {
  const { isLive, segmentsDone, segmentCount, bytes, freshBytes, elapsedMs, doneSec, leftMs } = report;
  if (report.phase === "joining") return `${bar(1, 1)} ${formatBytes(bytes)}  joining`.slice(0, columns);
  const rate = elapsedMs > 0 ? (freshBytes * 1000) / elapsedMs : 0;
  const done = isLive ? `live, ${clock(doneSec)}` : `${segmentsDone} of ${segmentCount} segments`;
  const left = isLive ? "" : `  ${leftMs === undefined ? "--:--" : clock(leftMs / 1000)} left`;
  const whole = bar(segmentsDone, isLive ? null : segmentCount);
  const line = `${whole} ${done}  ${formatBytes(bytes)}  ${formatBytes(rate)}/s${left}  ${shares(live)}`;
  return fitted(line, columns);
}
