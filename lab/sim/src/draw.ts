/** The way from the simulator to what draws: lab/sim/draw.mjs, in a process of its own since it is not compiled. */
import { spawnSync } from "node:child_process";
import path from "node:path";

/** `file` ends in .svg or .png. Relative to where the person typed the command. Throws when it cannot be drawn. */
export function drawTo(file: string, specification: object): void {
  const drawer = path.join(__dirname, "../draw.mjs");
  const target = path.resolve(process.env.INIT_CWD ?? process.cwd(), file);
  const { status } = spawnSync(process.execPath, [drawer, target], {
    input: JSON.stringify(specification),
    stdio: ["pipe", "inherit", "inherit"],
  });
  if (status !== 0) throw new Error(`${file} could not be drawn: ${drawer} ended with ${status}`);
}
