/** Builds the extension with the stand-in client into dist/transparency, for transparency.mjs. */
const path = require("node:path");
const { target } = require("../webpack.config.js");

module.exports = (_env, argv) => {
  const config = target("chromium", { mode: argv?.mode ?? "production" });
  const entry = Object.fromEntries(Object.entries(config.entry).filter(([name]) => name !== "engine-worker"));
  const alias = { ...config.resolve.alias, "@tributary/client/browser$": path.join(__dirname, "standin-client.ts") };
  return {
    ...config,
    entry,
    resolve: { ...config.resolve, alias },
    output: { ...config.output, path: path.join(__dirname, "..", "dist", "transparency") },
  };
};
