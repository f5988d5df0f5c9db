// A module that a grader has run once in the deployment: its default export, a query without arguments.
import { createContext, runInContext } from "node:vm";
import { inspect } from "node:util";
import { convexToJson } from "convex/values";
import { transform } from "esbuild";

const WRAPPERS = "convex:/_system/repl/wrappers.js";
// What functions find on a server besides the language itself.
const WEB = ["AbortController", "Blob", "Headers", "Request", "Response", "TextDecoder", "TextEncoder"];
const PLATFORM = [...WEB, "URL", "URLSearchParams", "atob", "btoa", "crypto", "structuredClone"];

/** A world of its own: what a probe does to Date, Intl or Convex is over when it ends. */
function aWorld(log) {
  const shared = Object.fromEntries(PLATFORM.map((name) => [name, globalThis[name]]));
  const performance = { now: () => globalThis.performance.now() };
  return createContext({ ...shared, performance, Convex: globalThis.Convex, console: consoleTo(log) });
}

function consoleTo(log) {
  const told = (level) => (...words) => log.push(`[${level}] ${words.map((word) => inspect(word)).join(" ")}`);
  return { log: told("LOG"), debug: told("DEBUG"), info: told("INFO"), warn: told("WARN"), error: told("ERROR") };
}

async function handlerOf(source, world) {
  const { code } = await transform(source, { format: "cjs", target: "es2022" });
  const module = { exports: {} };
  const required = (name) => {
    if (name === WRAPPERS) return { query: ({ handler }) => handler };
    throw new Error(`${name} can not be imported here.`);
  };
  runInContext(`(function (module, exports, require) {${code}\n})`, world)(module, module.exports, required);
  return module.exports.default;
}

/** What the server would say to it: the value, or the error, with all that was logged on the way. */
export async function probed(test, source) {
  const logLines = [];
  try {
    const value = await test.query(async () => (await handlerOf(source, aWorld(logLines)))());
    return { status: "success", value: convexToJson(value), logLines };
  } catch (error) {
    return { status: "error", errorMessage: String(error?.message ?? error), logLines };
  }
}
