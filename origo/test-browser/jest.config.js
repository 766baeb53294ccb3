/**
 * The dashboard in a real browser, in band, against the built packages (dist): run node infra/setup.mjs --browser
 * first.
 */
module.exports = {
  testEnvironment: "node",
  rootDir: __dirname,
  testMatch: ["<rootDir>/*.test.ts"],
  maxWorkers: 1,
  testTimeout: 120_000,
  transform: {
    "^.+\\.ts$": [
      "@swc/jest",
      { jsc: { parser: { syntax: "typescript" }, target: "es2022" }, module: { type: "commonjs" } },
    ],
  },
};
