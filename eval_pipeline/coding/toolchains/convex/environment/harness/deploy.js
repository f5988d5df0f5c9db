// As far as deploying goes without a backend: generates code, and bundles every module as Convex
// does. Leaves the generated files in ./convex/_generated.
import { spawnSync } from "node:child_process";
import { cpSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { build } from "esbuild";
import { modulesIn } from "./modules.js";

const [project] = process.argv.slice(2);
const ours = JSON.parse(readFileSync(join(project, "package.json"), "utf8"));

function bringProject() {
  cpSync(join(project, "convex"), "convex", { recursive: true });
  rmSync("convex/_generated", { recursive: true, force: true });
  cpSync(join(project, "package.json"), "package.json");
  symlinkSync(join(project, "node_modules"), "node_modules");
}

function generateCode() {
  const convex = join(project, "node_modules/convex/bin/main.js");
  const flags = ["codegen", "--system-udfs", "--typecheck", "disable", "--init"];
  const env = { ...process.env, CONVEX_TMPDIR: process.cwd() };
  const done = spawnSync(process.execPath, [convex, ...flags], { env, encoding: "utf8" });
  if (done.status === 0) return true;
  console.log(`Code could not be generated.\n${done.stdout}${done.stderr}`);
  return false;
}

/** Only what an answer may depend on is found, though the checks' own tools lie beside it. */
const onlyDependencies = {
  name: "only-dependencies",
  setup(build) {
    build.onResolve({ filter: /^[^./]/ }, ({ path, importer, kind }) => {
      const name = path.split("/", path.startsWith("@") ? 2 : 1).join("/");
      const isOurs = kind === "entry-point" || importer.includes("/node_modules/");
      if (isOurs || isBuiltin(path) || name in ours.dependencies) return undefined;
      return { errors: [{ text: `Could not resolve "${path}"` }] };
    });
  },
};

async function bundle(modules, platform) {
  try {
    await build({
      entryPoints: modules.map((path) => join("convex", path)),
      bundle: true,
      write: false,
      outdir: "bundled",
      format: "esm",
      target: "esnext",
      platform,
      conditions: ["convex", "module"],
      plugins: [onlyDependencies],
      logLevel: "silent",
    });
    return true;
  } catch (error) {
    if (!error.errors) throw error;
    for (const { location, text } of error.errors) {
      console.log(location ? `${location.file}:${location.line}: ${text}` : text);
    }
    return false;
  }
}

async function bundleAll() {
  const forNode = (path) =>
    /^\s*("|')use node\1;?\s*$/m.test(readFileSync(join(project, "convex", path), "utf8"));
  const modules = modulesIn(join(project, "convex"));
  const inNode = await bundle(modules.filter(forNode), "node");
  const elsewhere = await bundle(modules.filter((path) => !forNode(path)), "browser");
  return inNode && elsewhere;
}

bringProject();
// A module may import what is generated, so that comes first.
process.exitCode = generateCode() && (await bundleAll()) ? 0 : 1;
