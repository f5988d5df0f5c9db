// Says which of an answer's dependencies this environment does not have. Nothing is fetched.
import { readFileSync } from "node:fs";
import semver from "semver";

const [answerFile] = process.argv.slice(2);
const ours = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

function problemsOf(manifest) {
  if (typeof manifest !== "object" || manifest === null || Array.isArray(manifest)) {
    return ["package.json is not a JSON object"];
  }
  // What an answer develops with takes no part here: the checks bring tools of their own.
  return ["dependencies", "optionalDependencies", "peerDependencies"].flatMap((field) =>
    Object.entries(manifest[field] ?? {}).flatMap(([name, range]) => problemOf(name, range)),
  );
}

function problemOf(name, range) {
  const version = ours.dependencies[name];
  if (version === undefined) {
    if (name in ours.devDependencies) return [];
    const available = Object.keys(ours.dependencies).join(", ");
    return [`${name} is not available in this environment; available are: ${available}`];
  }
  if (range === "latest" || semver.satisfies(version, String(range))) return [];
  return [`${name} ${range} is asked for, and this environment has ${version}`];
}

let problems;
try {
  problems = problemsOf(JSON.parse(readFileSync(answerFile, "utf8")));
} catch (error) {
  problems = [`package.json can not be read: ${error.message}`];
}
if (problems.length > 0) {
  console.log(problems.join("\n"));
  process.exitCode = 1;
}
