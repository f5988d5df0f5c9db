// Which modules of a project are the app's own: not its components', tests or configuration.
import { dirname, join } from "node:path";
import { configIn } from "./components.js";
import { modulesIn } from "./modules.js";

function isInComponent(folder, path) {
  for (let inside = dirname(path); inside !== "."; inside = dirname(inside)) {
    if (configIn(join(folder, inside))) return true;
  }
  return false;
}

/** Paths in the folder, sorted; what has a second dot in its name is no module to Convex. */
export function functionModules(folder) {
  return modulesIn(folder).filter(
    (path) => !path.replace(/\.\w+$/, "").includes(".") && !isInComponent(folder, path),
  );
}
