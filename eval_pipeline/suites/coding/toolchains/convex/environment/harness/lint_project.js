// Runs eslint in the project's folder with the configuration that it is given, comments respected.
import { join, resolve } from "node:path";

const project = resolve(import.meta.dirname, "..");

process.chdir(join(project, "output"));
await import(join(project, "node_modules/eslint/bin/eslint.js"));
