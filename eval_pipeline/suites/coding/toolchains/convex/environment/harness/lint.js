// Looks for comments that silence eslint, then runs it: from the project's folder, for it looks at
// files under its working folder only.
import { join, resolve } from "node:path";
import { tellSilencers } from "./modules.js";

const project = resolve(import.meta.dirname, "..");

process.chdir(project);
const silenced = tellSilencers(project, /eslint-(?:disable|enable)|^\s*eslint\s/);
await import(join(project, "node_modules/eslint/bin/eslint.js"));
process.on("exit", () => {
  if (silenced) process.exitCode = 1;
});
