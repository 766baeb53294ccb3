/** The user's folders, as the platform has them. */
import os from "node:os";
import path from "node:path";

export const configFolder = (env: NodeJS.ProcessEnv = process.env): string =>
  userFolder(env.XDG_CONFIG_HOME, env.APPDATA, ".config");

export const cacheFolder = (env: NodeJS.ProcessEnv = process.env): string =>
  userFolder(env.XDG_CACHE_HOME, env.LOCALAPPDATA, ".cache");

function userFolder(xdg: string | undefined, windows: string | undefined, name: string): string {
  if (xdg !== undefined && path.isAbsolute(xdg)) return path.join(xdg, "tributary");
  const parent = process.platform === "win32" && windows ? windows : path.join(os.homedir(), name);
  return path.join(parent, "tributary");
}
