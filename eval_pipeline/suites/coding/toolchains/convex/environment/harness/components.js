// The components that a project mounts: read from its convex.config.ts, which is not run for that.
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const IMPORT = /import\s+(\w+)\s+from\s+["']([^"']*convex\.config(?:\.[jt]s)?)["']/g;
const USE = /\.use\(\s*(\w+)\s*(?:,\s*\{[^}]*?\bname:\s*["'](\w+)["'])?/g;
const NAME = /defineComponent\(\s*["'](\w+)["']/;

/** The configuration in a folder, wherever it is: in TypeScript, or built. */
export function configIn(folder) {
  return ["ts", "js"].map((end) => join(folder, `convex.config.${end}`)).find(existsSync);
}

function resolved(specifier, config) {
  if (specifier.startsWith(".")) return configIn(dirname(join(dirname(config), specifier)));
  try {
    return createRequire(config).resolve(specifier);
  } catch {
    return undefined;
  }
}

/** What a configuration mounts, one after the other: {name, specifier, folder}. */
export function mounted(config) {
  const text = readFileSync(config, "utf8");
  const imports = new Map([...text.matchAll(IMPORT)].map(([, name, path]) => [name, path]));
  return [...text.matchAll(USE)].flatMap(([, variable, name]) => {
    const specifier = imports.get(variable);
    const found = specifier && resolved(specifier, config);
    if (!found) return [];
    const own = NAME.exec(readFileSync(found, "utf8"));
    return [{ name: name ?? own?.[1] ?? variable, specifier, folder: dirname(realpathSync(found)) }];
  });
}
