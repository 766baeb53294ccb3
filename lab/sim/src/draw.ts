/** Draws pictures with lab/sim/draw.mjs, in a separate process because that file is not compiled. */
import { spawnSync } from "node:child_process";
import path from "node:path";

/** `file` ends in .svg or .png and is relative to the caller's folder. Throws when drawing fails. */
export function drawTo(file: string, specification: object): void {
  const drawer = path.join(__dirname, "../draw.mjs");
  const target = path.resolve(process.env.INIT_CWD ?? process.cwd(), file);
  const { status } = spawnSync(process.execPath, [drawer, target], {
    input: JSON.stringify(specification),
    stdio: ["pipe", "inherit", "inherit"],
  });
  if (status !== 0) throw new Error(`${file} could not be drawn: ${drawer} ended with ${status}`);
}
