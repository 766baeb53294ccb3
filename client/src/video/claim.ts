/** One process at a time works in the folder of an unfinished film. Two would mix their bytes. */
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { VideoError } from "./presentation";

/**
 * Resolves with a function that gives the claim up. Throws a VideoError if another process has one. The claim is a file
 * beside the folder with the number of the process, so one that was killed has none.
 */
export async function claim(folder: string): Promise<() => Promise<void>> {
  const file = `${folder}.lock`;
  await mkdir(path.dirname(file), { recursive: true });
  for (;;) {
    try {
      await writeFile(file, String(process.pid), { flag: "wx" });
      return () => rm(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const owner = Number(await readFile(file, "utf8").catch(() => ""));
    if (owner !== process.pid && isAlive(owner))
      throw new VideoError(
        `Process ${owner} downloads to the same name: wait for it, or use another name. If it does something else, ` +
          `remove ${file}.`,
      );
    await rm(file, { force: true });
  }
}

/** Whether a process has this number now. */
export function isAlive(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
