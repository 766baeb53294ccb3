/**
 * Builds the extension into dist/chromium and dist/firefox, with one bundle per context. These are the demo packages,
 * which may read every site and start with static/defaults.json. pack.mjs makes the store packages from them.
 * Run: npx webpack --config extension/webpack.config.js
 */
const fs = require("node:fs");
const path = require("node:path");
const CopyPlugin = require("copy-webpack-plugin");
const { sources } = require("webpack");
const { manifestText } = require("./manifest");

const here = __dirname;
const root = path.dirname(here);

/** Resolves @tributary/X and @tributary/X/Y to the TypeScript sources of the packages. */
const aliases = Object.fromEntries(
  ["contract", "protocol", "client", "wasm-codec"].flatMap((name) => {
    const source = path.join(root, name, "src");
    const doors = fs.existsSync(source) ? fs.readdirSync(source).filter((file) => /^[\w-]+\.ts$/.test(file)) : [];
    return doors.map((file) => {
      const door = path.basename(file, ".ts");
      return [door === "index" ? `@tributary/${name}$` : `@tributary/${name}/${door}$`, path.join(source, file)];
    });
  }),
);

/** ES modules let webpack leave out what a context does not use. `tsc -b` checks the types. */
const typescript = {
  transpileOnly: true,
  configFile: path.join(here, "tsconfig.json"),
  compilerOptions: { module: "esnext", rootDir: root, sourceMap: false, declaration: false, composite: false },
};

const ENTRIES = {
  page: "./src/page/index.ts",
  carry: "./src/carry/index.ts",
  plain: "./src/plain/index.ts",
  "engine-worker": { import: "./src/transport/engine-worker.ts", chunkLoading: false },
  popup: "./src/popup/index.ts",
  options: "./src/options/index.ts",
  welcome: "./src/welcome/index.ts",
};
const BROWSER_ENTRIES = {
  chromium: {
    content: "./src/content/chromium.ts",
    frame: "./src/frame/chromium.ts",
    background: { import: "./src/background/chromium.ts", chunkLoading: false },
    transport: "./src/transport/offscreen.ts",
  },
  firefox: {
    content: "./src/content/firefox.ts",
    frame: "./src/frame/firefox.ts",
    background: { import: "./src/background/firefox.ts", chunkLoading: false },
  },
};
/** Bytes that every page of an allowed site loads. */
const PAGE_BYTES_MAX = 22_000;
const PAGE_SCRIPTS = ["page.js", "content.js"];
const OMITTED = { chromium: ["**/parts/**"], firefox: ["**/parts/**", "**/transport.html"] };

/**
 * Replaces a line `<!-- parts/NAME -->` by that file. Popup and options share such parts.
 */
function withParts(content, file) {
  if (!file.endsWith(".html")) return content;
  return content
    .toString()
    .replace(/^ *<!-- (parts\/[\w.]+) -->\n/gm, (_, part) => fs.readFileSync(path.join(here, "static", part), "utf8"));
}

/** Adds the manifest to the output. */
class ManifestPlugin {
  constructor(browser) {
    this.browser = browser;
  }
  apply(compiler) {
    compiler.hooks.thisCompilation.tap("manifest", (compilation) => {
      compilation.hooks.processAssets.tap("manifest", () => {
        const text = manifestText(this.browser, "all");
        compilation.emitAsset("manifest.json", new sources.RawSource(text));
      });
    });
  }
}

/** Refuses scripts of every page that are too long once they are minified. */
class PageSizePlugin {
  apply({ options, hooks, webpack }) {
    if (options.mode !== "production") return;
    const stage = webpack.Compilation.PROCESS_ASSETS_STAGE_REPORT;
    hooks.thisCompilation.tap("page-size", (compilation) => {
      compilation.hooks.processAssets.tap({ name: "page-size", stage }, () => {
        const sizes = PAGE_SCRIPTS.map((name) => compilation.getAsset(name)?.source.size() ?? 0);
        const sum = sizes.reduce((total, size) => total + size);
        if (sum <= PAGE_BYTES_MAX) return;
        const parts = PAGE_SCRIPTS.map((name, at) => `${name} ${sizes[at]} B`).join(", ");
        compilation.errors.push(new Error(`Scripts of every page: ${sum} B, at most ${PAGE_BYTES_MAX} B (${parts})`));
      });
    });
  }
}

/** One browser's configuration. */
function target(browser, { mode = "production" } = {}) {
  return {
    name: browser,
    context: here,
    mode,
    target: ["web", "es2022"],
    devtool: false,
    entry: { ...ENTRIES, ...BROWSER_ENTRIES[browser] },
    output: { path: path.join(here, "dist", browser), filename: "[name].js", publicPath: "", clean: true },
    optimization: { splitChunks: false, runtimeChunk: false },
    performance: { hints: false },
    resolve: { extensions: [".ts", ".js"], alias: aliases },
    module: { rules: [{ test: /\.ts$/, loader: "ts-loader", options: typescript }] },
    plugins: [
      new ManifestPlugin(browser),
      new PageSizePlugin(),
      new CopyPlugin({
        patterns: [
          { from: "static", globOptions: { ignore: OMITTED[browser] }, transform: withParts },
          { from: path.join(root, "wasm-codec", "module", "*.wasm"), to: "[name][ext]" },
        ],
      }),
    ],
  };
}

module.exports = (_env, argv) =>
  ["chromium", "firefox"].map((browser) => target(browser, { mode: argv?.mode ?? "production" }));
module.exports.target = target;
