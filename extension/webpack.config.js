/**
 * Builds the extension for Chromium into dist/chromium: one bundle per context, nothing shared between them at run
 * time, no code from anywhere but the package. Run from anywhere: npx webpack --config extension/webpack.config.js
 */
const fs = require("node:fs");
const path = require("node:path");
const CopyPlugin = require("copy-webpack-plugin");

const here = __dirname;
const root = path.dirname(here);

/** @tributary/X and @tributary/X/Y are the packages' TypeScript sources. */
const aliases = Object.fromEntries(
  ["protocol", "client", "wasm-codec", "origo"].flatMap((name) => {
    const source = path.join(root, name, "src");
    const doors = fs.existsSync(source) ? fs.readdirSync(source).filter((file) => /^[\w-]+\.ts$/.test(file)) : [];
    return doors.map((file) => {
      const door = path.basename(file, ".ts");
      return [door === "index" ? `@tributary/${name}$` : `@tributary/${name}/${door}$`, path.join(source, file)];
    });
  }),
);

/** The manifest with what package.json knows. */
function manifest(template) {
  const { version } = JSON.parse(fs.readFileSync(path.join(here, "package.json"), "utf8"));
  return JSON.stringify({ ...JSON.parse(template.toString()), version }, null, 2);
}

/** ES modules, so that webpack can leave out what a context does not use; types are checked by `tsc -b`. */
const typescript = {
  transpileOnly: true,
  configFile: path.join(here, "tsconfig.json"),
  compilerOptions: { module: "esnext", rootDir: root, sourceMap: false, declaration: false, composite: false },
};

module.exports = (_env, argv) => ({
  name: "chromium",
  context: here,
  mode: argv?.mode ?? "production",
  target: ["web", "es2022"],
  devtool: false,
  entry: {
    page: "./src/page/index.ts",
    content: "./src/content/index.ts",
    frame: "./src/frame/index.ts",
    background: { import: "./src/background/index.ts", chunkLoading: false },
    transport: "./src/transport/index.ts",
    "engine-worker": { import: "./src/transport/engine-worker.ts", chunkLoading: false },
    popup: "./src/popup/index.ts",
  },
  output: { path: path.join(here, "dist", "chromium"), filename: "[name].js", publicPath: "", clean: true },
  optimization: { splitChunks: false, runtimeChunk: false },
  performance: { hints: false },
  resolve: { extensions: [".ts", ".js"], alias: aliases },
  module: { rules: [{ test: /\.ts$/, loader: "ts-loader", options: typescript }] },
  plugins: [
    new CopyPlugin({
      patterns: [
        { from: "static/manifest.json", to: "manifest.json", transform: manifest },
        { from: "static", globOptions: { ignore: ["**/manifest.json"] } },
        { from: path.join(root, "wasm-codec", "module", "*.wasm"), to: "[name][ext]" },
      ],
    }),
  ],
});
