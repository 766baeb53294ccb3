/** End-to-end tests, in band, against the built packages (dist): run node infra/setup.mjs --browser --firefox first. */
module.exports = {
  testEnvironment: "node",
  rootDir: __dirname,
  testMatch: ["<rootDir>/*.test.ts", "<rootDir>/attacks/*.test.ts"],
  maxWorkers: 1,
  testTimeout: 180_000,
  transform: {
    "^.+\\.ts$": [
      "@swc/jest",
      { jsc: { parser: { syntax: "typescript" }, target: "es2022" }, module: { type: "commonjs" } },
    ],
  },
};
