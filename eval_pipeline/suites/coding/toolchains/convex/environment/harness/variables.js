// The environment variables that a project declares: read from its convex.config.ts, which is not run
// for that. What is not written out there is not known here.
import { readFileSync } from "node:fs";
import { v } from "convex/values";
import { parseSync } from "rolldown/utils";
import { configIn } from "./components.js";

function callsIn(node, name) {
  if (Array.isArray(node)) return node.flatMap((one) => callsIn(one, name));
  if (typeof node !== "object" || node === null) return [];
  const inside = Object.values(node).flatMap((one) => callsIn(one, name));
  const isCall = node.type === "CallExpression" && node.callee.name === name;
  return isCall ? [node, ...inside] : inside;
}

/** A literal, or a validator that is made of such; throws at anything else. */
function valueOf(node) {
  if (node.type === "Literal") return node.value;
  const { callee, arguments: args } = node;
  const isValidator = callee?.type === "MemberExpression" && callee.object.name === "v" && !callee.computed;
  if (!isValidator || !Object.hasOwn(v, callee.property.name)) throw new Error("It is not written out.");
  return v[callee.property.name](...args.map(valueOf));
}

function declared({ key, value }) {
  const validator = valueOf(value);
  const optional = validator.isOptional === "optional" ? { optional: true } : {};
  return [key.name ?? key.value, { type: "value", value: JSON.stringify(validator.json), ...optional }];
}

/** Their names and types, as Convex's own templates take them; undefined if they are not known. */
export function variablesIn(folder) {
  const config = configIn(folder);
  if (!config) return [];
  try {
    const [app] = callsIn(parseSync(config, readFileSync(config, "utf8")).program, "defineApp");
    const env = app.arguments[0]?.properties.find(({ key }) => (key?.name ?? key?.value) === "env");
    return env ? env.value.properties.map(declared) : [];
  } catch {
    return undefined;
  }
}
