import eslint from "@eslint/js";
import tseslint from "typescript-eslint";
import { primordials } from "./extension/eslint-primordials.mjs";

export default tseslint.config(
  { ignores: ["**/dist/**", "**/build/**", "**/node_modules/**", "lab/stack/sample/media/**"] },
  eslint.configs.recommended,
  ...tseslint.configs.recommended,
  {
    languageOptions: {
      globals: {
        process: "readonly",
        console: "readonly",
        URL: "readonly",
        Buffer: "readonly",
        setTimeout: "readonly",
        clearTimeout: "readonly",
        fetch: "readonly",
        module: "writable",
        require: "readonly",
        __dirname: "readonly",
        AbortSignal: "readonly",
        AbortController: "readonly",
      },
    },
    rules: {
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      eqeqeq: "error",
      "no-restricted-syntax": [
        "error",
        {
          selector:
            ":matches(PropertyDefinition, MethodDefinition[kind!='constructor'], TSParameterProperty)" +
            "[accessibility='private']",
          message: "Name private members with a #.",
        },
      ],
    },
  },
  {
    // What runs in the page's world.
    files: [
      "extension/src/{page,carry,plain}/*.ts",
      "extension/src/shared/{carry,fields,given-rules,handed-over,kept,names,plain,rules}.ts",
      "extension/src/shared/{,late-}{platform,primordials}.ts",
    ],
    ignores: ["**/*.test.ts"],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { tributary: { rules: { primordials } } },
    rules: {
      "tributary/primordials": "error",
      // A promise that is returned would be asked for `then`.
      "@typescript-eslint/return-await": ["error", "always"],
    },
  },
  {
    files: ["extension/src/page/*.ts"],
    ignores: ["**/*.test.ts"],
    rules: { "tributary/primordials": ["error", "early"] },
  },
  { files: ["**/*.js"], rules: { "@typescript-eslint/no-require-imports": "off" } },
);
