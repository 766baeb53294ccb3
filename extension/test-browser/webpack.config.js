/** The extension with the stand-in client, into dist/transparency: for test-browser/transparency.mjs only. */
const path = require("node:path");
const base = require("../webpack.config.js");

module.exports = (env, argv) => {
  const config = base(env, argv);
  const entry = Object.fromEntries(Object.entries(config.entry).filter(([name]) => name !== "engine-worker"));
  const alias = { ...config.resolve.alias, "@tributary/client/browser$": path.join(__dirname, "standin-client.mjs") };
  return { ...config, entry, resolve: { ...config.resolve, alias }, output: { ...config.output, path: path.join(__dirname, "..", "dist", "transparency") } };
};
