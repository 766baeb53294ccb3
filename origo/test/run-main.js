/** Runs src/main.ts as a process without a build, for main.test.ts: `node origo/test/run-main.js`. */
const { readFileSync } = require("node:fs");
const path = require("node:path");
const { transformSync } = require("@swc/core");

require.extensions[".ts"] = (module, filename) => {
  const options = {
    filename,
    jsc: { parser: { syntax: "typescript" }, target: "es2022" },
    module: { type: "commonjs" },
  };
  module._compile(transformSync(readFileSync(filename, "utf8"), options).code, filename);
};
require(path.join(__dirname, "../src/main.ts"));
