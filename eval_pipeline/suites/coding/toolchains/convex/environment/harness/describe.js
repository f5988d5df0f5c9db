// Describes the reference of a task, in ./description.json: for graders that compare with it.
import { existsSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { build } from "esbuild";
import { describe } from "./description.js";
import { bringProject, generateAll } from "./generating.js";
import { functionModules } from "./functions.js";

const [project] = process.argv.slice(2);

bringProject(project, join(project, "output"));
if (generateAll(project)) {
  const paths = functionModules("convex");
  await build({
    entryPoints: paths.map((path) => join("convex", path)),
    outbase: "convex",
    outdir: "bundled",
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    packages: "external",
    outExtension: { ".js": ".mjs" },
    logLevel: "silent",
  });
  const modules = {};
  for (const path of paths) {
    const name = path.replace(/\.\w+$/, "");
    const file = resolve("bundled", `${name}.mjs`);
    if (existsSync(file)) modules[name] = await import(file);
  }
  writeFileSync("description.json", JSON.stringify(describe(modules)));
} else {
  process.exitCode = 1;
}
