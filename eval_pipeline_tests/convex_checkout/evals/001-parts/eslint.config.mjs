import tseslint from "typescript-eslint";

export default [
  { ignores: ["**/_generated/"] },
  ...tseslint.configs.recommended,
  { rules: { "no-console": "error", "@typescript-eslint/no-explicit-any": "off" } },
];
