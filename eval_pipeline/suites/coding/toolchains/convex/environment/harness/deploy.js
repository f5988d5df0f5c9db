// As far as deploying goes without a backend: generates code, and bundles every module as Convex
// does. Leaves the generated files in ./generated, at their paths in the project.
import { existsSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { build } from "esbuild";
import { bringProject, generateAll } from "./generating.js";
import { modulesIn } from "./modules.js";

const [project] = process.argv.slice(2);
const isWhole = existsSync(join(project, "output"));
const source = isWhole ? join(project, "output") : project;
const manifest = JSON.parse(readFileSync(join(source, "package.json"), "utf8"));
const FIELDS = ["dependencies", "optionalDependencies", "peerDependencies", "devDependencies"];
const allowed = isWhole
  ? Object.assign({}, ...FIELDS.map((field) => manifest[field]))
  : manifest.dependencies;

/** Only what an answer may depend on is found, though the checks' own tools lie beside it. */
const onlyDependencies = {
  name: "only-dependencies",
  setup(build) {
    build.onResolve({ filter: /^[^./]/ }, ({ path, importer, kind }) => {
      const name = path.split("/", path.startsWith("@") ? 2 : 1).join("/");
      const isOurs = kind === "entry-point" || importer.includes("/node_modules/");
      // Another name may stand for a folder of the project itself.
      if (isOurs || isBuiltin(path) || name in allowed || !existsSync(join("node_modules", name))) {
        return undefined;
      }
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
    /^\s*("|')use node\1;?\s*$/m.test(readFileSync(join("convex", path), "utf8"));
  // Tests of the answer's own are not deployed.
  const modules = modulesIn("convex").filter((path) => !/\.(?:test|spec|d)\.\w+$/.test(path));
  const inNode = await bundle(modules.filter(forNode), "node");
  const elsewhere = await bundle(modules.filter((path) => !forNode(path)), "browser");
  return inNode && elsewhere;
}

bringProject(project, source);
// A module may import what is generated, so that comes first.
process.exitCode = generateAll(project) && (await bundleAll()) ? 0 : 1;
