// Generated code for a project, without a backend: what `convex codegen` makes from files alone, and
// beside it the names of the components that the project mounts and the types of its variables.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { serverCodegen } from "../node_modules/convex/dist/esm/cli/codegen_templates/server.js";
import { configIn, mounted } from "./components.js";
import { variablesIn } from "./variables.js";

/** Copies a project to the working folder, without packages and generated code. */
export function bringProject(project, source) {
  const isLeftOut = /(?:^|\/)(?:node_modules|_generated)(?:\/|$)/;
  for (const name of source === project ? ["convex", "package.json"] : readdirSync(source)) {
    const filter = (path) => !isLeftOut.test(path.slice(source.length));
    if (!isLeftOut.test(name)) cpSync(join(source, name), name, { recursive: true, filter });
  }
  symlinkSync(join(project, "node_modules"), "node_modules");
}

/** Generates code for the app and for each component in it; returns whether that was possible. */
export function generateAll(project) {
  const inside = localComponents("convex");
  const made = [...inside.map((folder) => generateAlone(project, folder)), generate(project, ".")];
  if (!made.every(Boolean)) return false;
  const envVars = variablesIn("convex");
  const types = "convex/_generated/server.d.ts";
  if (envVars && existsSync(types)) {
    writeFileSync(types, serverCodegen({ useTypeScript: false, envVars }).DTS);
  }
  for (const folder of ["convex", ...inside]) {
    nameComponents(folder);
    cpSync(join(folder, "_generated"), join("generated", folder, "_generated"), { recursive: true });
  }
  return true;
}

function localComponents(root) {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory() && configIn(join(entry.parentPath, entry.name)))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** A component is generated for as if it were an app of its own. */
function generateAlone(project, folder) {
  const apart = join("apart", folder.replaceAll("/", "-"));
  mkdirSync(apart, { recursive: true });
  cpSync(folder, join(apart, "convex"), { recursive: true });
  cpSync("package.json", join(apart, "package.json"));
  symlinkSync(join(project, "node_modules"), join(apart, "node_modules"));
  if (!generate(project, apart)) return false;
  cpSync(join(apart, "convex/_generated"), join(folder, "_generated"), { recursive: true });
  rmSync(apart, { recursive: true });
  return true;
}

function generate(project, cwd) {
  const convex = join(project, "node_modules/convex/bin/main.js");
  const flags = ["codegen", "--system-udfs", "--typecheck", "disable", "--init"];
  const env = { ...process.env, CONVEX_TMPDIR: process.cwd() };
  const done = spawnSync(process.execPath, [convex, ...flags], { cwd, env, encoding: "utf8" });
  if (done.status === 0) return true;
  console.log(`Code could not be generated.\n${done.stdout}${done.stderr}`);
  return false;
}

/** Adds the export `components`, which the tool only makes with a backend's help. */
function nameComponents(folder) {
  const config = configIn(folder);
  const uses = config ? mounted(join(process.cwd(), config)) : [];
  if (uses.length === 0) return;
  const types = uses.map(({ name, specifier }) => `  ${name}: ${typeOf(name, specifier)};`);
  add(join(folder, "_generated/api.d.ts"), `export declare const components: {\n${types.join("\n")}\n};`);
  add(
    join(folder, "_generated/api.js"),
    'import { componentsGeneric } from "convex/server";\nexport const components = componentsGeneric();',
  );
}

function add(file, text) {
  const before = existsSync(file) ? readFileSync(file, "utf8") : "";
  if (/export (?:declare )?const components\b/.test(before)) return;
  writeFileSync(file, `${before}\n${text}\n`);
}

/** A package that says what it offers is taken at its word; of others anything may be called. */
function typeOf(name, specifier) {
  const said = specifier.replace(/convex\.config(?:\.[jt]s)?$/, "_generated/component.js");
  const isSaid = !specifier.startsWith(".") && existsSync(typesOf(specifier, said));
  return isSaid
    ? `import("${said}").ComponentApi<"${name}">`
    : 'import("convex/server").AnyComponents[string]';
}

function typesOf(specifier, said) {
  const resolve = createRequire(join(process.cwd(), "package.json")).resolve;
  return join(dirname(resolve(specifier)), "_generated", said.endsWith(".js") ? "component.d.ts" : "");
}
