// The answer's own modules, which are all that is in its folder besides generated code.
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { parseSync } from "rolldown/utils";

/** Paths relative to `folder`, sorted, so that messages come in the same order every time. */
export function modulesIn(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(?:[cm]?[jt]s|[jt]sx)$/.test(entry.name))
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .filter((path) => !/(?:^|\/)_generated\//.test(path))
    .sort();
}

/** Tells of every comment that would silence a check; returns whether there is one. */
export function tellSilencers(project, pattern) {
  const folder = join(project, "convex");
  const found = modulesIn(folder).flatMap((path) => {
    const text = readFileSync(join(folder, path), "utf8");
    return parseSync(path, text)
      .comments.filter(({ value }) => pattern.test(value))
      .map(({ value, start }) => {
        const line = text.slice(0, start).split("\n").length;
        return `convex/${path}:${line}: ${pattern.exec(value)[0].trim()} is not allowed`;
      });
  });
  if (found.length > 0) console.log(found.join("\n"));
  return found.length > 0;
}
