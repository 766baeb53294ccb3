import eslint from "@eslint/js";
import tseslint from "typescript-eslint";

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
    files: ["extension/src/page/*.ts"],
    ignores: ["**/*.test.ts", "**/natives.ts"],
    rules: {
      "no-restricted-properties": [
        "error",
        ...["origin", "ports", "source"].map((property) => ({
          object: "event",
          property,
          message: "A getter of the page would meet the event. Use natives.ts.",
        })),
        { object: "Reflect", property: "apply", message: "A page can replace it. Use natives.apply." },
      ],
    },
  },
  { files: ["**/*.js"], rules: { "@typescript-eslint/no-require-imports": "off" } },
);
