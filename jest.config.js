/** Unit and component tests: `npx jest`. Browser tests live in test/ and run from infra/test.mjs. */
module.exports = {
  testEnvironment: "node",
  /** A hang, not slowness: cores are shared. */
  testTimeout: 30_000,
  roots: [
    "contract",
    "protocol",
    "multicast",
    "native-codec",
    "wasm-codec",
    "native-transport",
    "client",
    "proxy",
    "origo",
    "extension",
    "lab",
    "test",
  ].map((name) => `<rootDir>/${name}`),
  testMatch: ["**/src/**/*.test.ts", "<rootDir>/test/*/**/*.test.ts"],
  /** test/jest.config.js runs the attacks, native-codec/test.mjs the GPU coder on its driver's stand-in. */
  testPathIgnorePatterns: [
    "/node_modules/",
    "<rootDir>/test/attacks/",
    ...(process.env.TRIBUTARY_GPU_DOUBLE ? [] : ["/gpu-double.test.ts"]),
  ],
  modulePathIgnorePatterns: ["/dist/"],
  transform: Object.fromEntries(
    [
      ["^.+\\.ts$", {}],
      ["^.+\\.tsx$", { tsx: true }],
    ].map(([files, syntax]) => [
      files,
      [
        "@swc/jest",
        {
          jsc: {
            parser: { syntax: "typescript", ...syntax },
            transform: { react: { runtime: "automatic" } },
            target: "es2022",
          },
          module: { type: "commonjs" },
        },
      ],
    ]),
  ),
  moduleNameMapper: {
    "^@tributary/lab-([^/]+)$": "<rootDir>/lab/$1/src/index.ts",
    "^@tributary/([^/]+)$": "<rootDir>/$1/src/index.ts",
    "^@tributary/([^/]+)/([^/]+)$": "<rootDir>/$1/src/$2.ts",
  },
};
