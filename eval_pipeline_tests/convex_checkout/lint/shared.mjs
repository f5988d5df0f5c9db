export const shared = { rules: { "@typescript-eslint/no-explicit-any": "error", "@typescript-eslint/require-await": "off" } };
