/** Builds the dashboard into dist/dashboard: `npx webpack --config origo/webpack.config.js`. ts-loader checks its types too. */
const path = require("node:path");
const CopyPlugin = require("copy-webpack-plugin");

module.exports = {
  mode: "production",
  context: __dirname,
  target: "web",
  devtool: "source-map",
  entry: { dashboard: "./dashboard/src/main.ts" },
  output: { path: path.join(__dirname, "dist/dashboard"), filename: "[name].js", publicPath: "", clean: true },
  resolve: { extensions: [".ts", ".js"] },
  module: {
    rules: [{
      test: /\.ts$/,
      loader: "ts-loader",
      options: { configFile: path.join(__dirname, "dashboard/tsconfig.json"), onlyCompileBundledFiles: true },
    }],
  },
  plugins: [new CopyPlugin({ patterns: [{ from: "dashboard/static" }] })],
  performance: { maxAssetSize: 100_000, maxEntrypointSize: 100_000 },
};
