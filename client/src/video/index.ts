/** Whole videos in one command: what the command line uses. */
export { downloadVideo, type VideoOptions, type VideoResult } from "./download";
export { isQuality, QUALITY_ALLOWED } from "./choose";
export { VideoError } from "./presentation";
export type { VideoProgressReport } from "./progress";
export { formatOfContent, formatOfName, formatOfType } from "./recognise";
export { isAlive } from "./claim";
export { findFfmpeg, runFfmpeg } from "./ffmpeg";
