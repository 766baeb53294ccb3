/**
 * Builds the dashboard into dist/dashboard: `npx webpack --config origo/webpack.config.js`. It does not check types:
 * `npx tsc -p origo/dashboard --noEmit`.
 */
const path = require("node:path");
const CopyPlugin = require("copy-webpack-plugin");
const { EnvironmentPlugin } = require("webpack");
const MiniCssExtractPlugin = require("mini-css-extract-plugin");

module.exports = {
  mode: "production",
  context: __dirname,
  target: "web",
  devtool: "source-map",
  entry: {
    dashboard: "./dashboard/src/main.tsx",
    // The page of a publication is in a folder of its own address, so it loads its parts from the root.
    player: { import: "./dashboard/src/player/player.ts", publicPath: "/" },
  },
  output: {
    path: path.join(__dirname, "dist/dashboard"),
    filename: "[name].js",
    chunkFilename: "[name].[contenthash:8].js",
    publicPath: "",
    clean: true,
  },
  resolve: {
    extensions: [".tsx", ".ts", ".mjs", ".js"],
    alias: { "@tributary/contract": path.join(__dirname, "../contract/src") },
  },
  module: {
    rules: [
      {
        test: /\.tsx?$/,
        loader: "ts-loader",
        options: { configFile: path.join(__dirname, "dashboard/tsconfig.json"), transpileOnly: true },
      },
      { test: /\.css$/, use: [MiniCssExtractPlugin.loader, "css-loader"] },
      { test: /land-110m\.json$/, type: "json", use: path.join(__dirname, "dashboard/land-loader.js") },
    ],
  },
  plugins: [
    new EnvironmentPlugin({ NODE_ENV: "production" }),
    new MiniCssExtractPlugin(),
    new CopyPlugin({ patterns: [{ from: "dashboard/static" }] }),
  ],
  performance: { maxAssetSize: 1_200_000, maxEntrypointSize: 1_200_000 },
};
