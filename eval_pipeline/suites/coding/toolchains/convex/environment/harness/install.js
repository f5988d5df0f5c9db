// Says which of an answer's dependencies this environment does not have. Nothing is fetched.
// For a whole project, a version that stands in for the one asked for is named, and what can not be
// told without fetching is not held against it: exit code 3.
import { readFileSync } from "node:fs";
import semver from "semver";

const NOBODY_CAN_TELL = 3;
const [answerFile, isProject] = process.argv.slice(2);
const ours = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const versions = { ...ours.devDependencies, ...ours.dependencies };
const standIns = [];
const unknown = [];

function problemsOf(manifest) {
  if (typeof manifest !== "object" || manifest === null || Array.isArray(manifest)) {
    return ["package.json is not a JSON object"];
  }
  const told = isProject ? problemOfProject : problemOf;
  // What an answer develops with takes no part here: the checks bring tools of their own.
  return ["dependencies", "optionalDependencies", "peerDependencies"].flatMap((field) =>
    Object.entries(manifest[field] ?? {}).flatMap(([name, range]) => told(name, String(range))),
  );
}

/** Whether it is what the checks bring themselves, such as a compiler, wherever it is named. */
function isTool(name) {
  return name in ours.devDependencies && !ours.onlyForProjects.includes(name);
}

/** Whether ours is a later one that has all of the one asked for, or differs in corrections only. */
function isNear(version, range) {
  const least = semver.validRange(range) && semver.minVersion(range);
  return least && (semver.satisfies(version, `^${least}`) || semver.satisfies(least, `~${version}`));
}

function problemOf(name, range) {
  const version = ours.dependencies[name];
  if (version === undefined) {
    if (isTool(name)) return [];
    const available = Object.keys(ours.dependencies).join(", ");
    return [`${name} is not available in this environment; available are: ${available}`];
  }
  if (range === "latest" || semver.satisfies(version, range)) return [];
  return [`${name} ${range} is asked for, and this environment has ${version}`];
}

function problemOfProject(name, range) {
  if (/^(?:file|link|portal|workspace):/.test(range)) return [`${name} ${range} is not there`];
  const version = versions[name];
  if (version === undefined) {
    unknown.push(`${name} is not in this environment, and nothing is fetched`);
  } else if (range !== "latest" && !semver.satisfies(version, range)) {
    const told = `${name} ${range} is asked for, and this environment has ${version}`;
    (isTool(name) || isNear(version, range) ? standIns : unknown).push(told);
  }
  return [];
}

let problems;
try {
  problems = problemsOf(JSON.parse(readFileSync(answerFile, "utf8")));
} catch (error) {
  problems = [`package.json can not be read: ${error.message}`];
}
const lines = [...problems, ...unknown, ...standIns];
if (lines.length > 0) console.log(lines.join("\n"));
if (problems.length > 0) process.exitCode = 1;
else if (unknown.length > 0) process.exitCode = NOBODY_CAN_TELL;
