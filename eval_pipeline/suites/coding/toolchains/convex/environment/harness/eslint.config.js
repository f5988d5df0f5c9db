// How answers are linted. Of the recommended rules those are left out that only warn, and those that
// ask for the newest spelling of an API: whoever learned Convex earlier writes correct code too.
import convex from "@convex-dev/eslint-plugin";
import tseslint from "typescript-eslint";

export default [
  { ignores: ["**/_generated/**", "node_modules/**", "harness/**", "cache/**", "grader/**"] },
  ...tseslint.configs.recommended,
  {
    files: ["convex/**/*.ts"],
    plugins: { "@convex-dev": convex },
    rules: {
      "@typescript-eslint/no-unused-vars": [
        "error",
        { argsIgnorePattern: "^_", varsIgnorePattern: "^_", caughtErrorsIgnorePattern: "^_" },
      ],
      "@convex-dev/no-old-registered-function-syntax": "error",
      "@convex-dev/require-args-validator": "error",
      "@convex-dev/no-schema-import-cycle": "error",
      "@convex-dev/no-duplicate-indexes": "error",
    },
  },
];
