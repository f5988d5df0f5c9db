import tseslint from "typescript-eslint";
import { shared } from "./lint/shared.mjs";

export default tseslint.config({ ignores: ["**/_generated/"] }, tseslint.configs.recommendedTypeChecked, shared, {
  files: ["**/*.ts"],
  languageOptions: { parserOptions: { project: true, tsconfigRootDir: import.meta.dirname } },
});
