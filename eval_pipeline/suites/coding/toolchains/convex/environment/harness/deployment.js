// A deployment of the project under test, in this process: convex-test with its functions, and what
// an admin and the web could ask of it.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { convexTest } from "convex-test";
import { makeFunctionReference } from "convex/server";
import { ConvexError } from "convex/values";
import { configIn, mounted } from "./components.js";
import { adminView, describe } from "./description.js";
import { functionModules } from "./functions.js";
import { isTaken } from "./validators.js";
import { answerFetch } from "./web.js";

const folder = join(process.env.MODEL_OUTPUT_DIR, "convex");
const MOST_DELETED = 10_000;

let running;

/** The one deployment there is; what one test leaves, the next one finds, as on a server. */
export function backend() {
  running ??= new Deployment();
  return running;
}

export { answerOf } from "./reference.js";

/** Lets fetch reach the deployment, at the addresses that graders and functions know. */
export function serve() {
  const [cloud, site] = ["CONVEX_PORT", "CONVEX_SITE_PORT"].map(
    (name) => `http://localhost:${process.env[name]}`,
  );
  Object.assign(process.env, { CONVEX_CLOUD_URL: cloud, CONVEX_SITE_URL: site });
  const elsewhere = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    return (await answerFetch(request, { cloud, site, backend })) ?? (await elsewhere(input, init));
  };
}

function modulesOf(root, paths) {
  const named = paths.map((path) => [`${root}/${path}`, () => import(/* @vite-ignore */ `${root}/${path}`)]);
  // convex-test finds the root of the modules by this one.
  return { [`${root}/_generated/api.js`]: async () => ({}), ...Object.fromEntries(named) };
}

async function defaultOf(root, name) {
  const file = [`${name}.ts`, `${name}.js`].map((path) => join(root, path)).find(existsSync);
  return file && (await import(/* @vite-ignore */ file)).default;
}

class Deployment {
  #components = [];
  #test = this.#start();
  #described;

  async #start() {
    const schema = await defaultOf(folder, "schema");
    const test = convexTest({ schema, modules: modulesOf(folder, functionModules(folder)) });
    const config = configIn(folder);
    if (config) this.#components = await mountAll(test, config, "");
    return test;
  }

  async test() {
    return await this.#test;
  }

  async describe() {
    this.#described ??= this.#load();
    return await this.#described;
  }

  async #load() {
    const modules = {};
    for (const path of functionModules(folder)) {
      modules[path.replace(/\.\w+$/, "")] = await import(/* @vite-ignore */ `${folder}/${path}`);
    }
    return describe(modules);
  }

  async call(type, name, args, { isAdmin, identity }) {
    if (name.startsWith("_system/")) {
      if (!isAdmin) throw new Error(`${name} is only for admins.`);
      return await this.#system(name, args);
    }
    const known = await this.#function(name);
    if (!known || (known.visibility.kind !== "public" && !isAdmin)) {
      throw new Error(`Could not find public function for '${name}'.`);
    }
    const test = await this.#test;
    const asked = identity ? test.withIdentity(identity) : test;
    try {
      return await asked[type](makeFunctionReference(name), args);
    } catch (error) {
      throw asSeenByClients(error, known, args);
    }
  }

  async #function(name) {
    const [path, exported = "default"] = name.split(":");
    const { functions } = await this.describe();
    return functions.find((one) => one.identifier === `${path}.js:${exported}`);
  }

  async #system(name, args) {
    const test = await this.#test;
    // A component's path is its id here.
    const run = args.componentId ? test.runInComponent.bind(test, args.componentId) : test.run;
    switch (name) {
      case "_system/frontend/addDocument":
        return await added(run, args);
      case "_system/frontend/listTableScan":
        return await run((ctx) => ctx.db.query(args.table).order("desc").take(args.limit));
      case "_system/frontend/clearTablePage":
        return { deleted: await cleared(run, args.tableName), continueCursor: null, hasMore: false };
      case "_system/frontend/components:list":
        return this.#components.map((path) => ({ id: path, name: path, path, args: {}, state: "active" }));
      case "_system/cli/queryTable":
        return args.tableName === "_cron_jobs" ? (await this.describe()).crons : [];
      default:
        return adminView(name, await this.describe());
    }
  }
}

/** The paths of what is mounted, in components of components too. */
async function mountAll(test, config, prefix) {
  const paths = [];
  for (const { name, folder: root } of mounted(config)) {
    const path = `${prefix}${name}`;
    test.registerComponent(path, await defaultOf(root, "schema"), modulesOf(root, functionModules(root)));
    const own = configIn(root);
    paths.push(path, ...(own ? await mountAll(test, own, `${path}/`) : []));
  }
  return paths;
}

async function added(run, { table, documents }) {
  try {
    await run(async (ctx) => {
      for (const document of documents) await ctx.db.insert(table, document);
    });
    return { success: true };
  } catch (error) {
    return { success: false, error: error.message };
  }
}

async function cleared(run, table) {
  return await run(async (ctx) => {
    const documents = await ctx.db.query(table).take(MOST_DELETED);
    for (const { _id } of documents) await ctx.db.delete(_id);
    return documents.length;
  });
}

/** Errors are told to clients in the server's words, as far as graders look for these. */
function asSeenByClients(error, { args: validator }, args) {
  if (error instanceof ConvexError) return error;
  const message = error?.message ?? String(error);
  const isRefused = message.startsWith("Validator error") && !isTaken(validator, args);
  const kind = isRefused ? "ArgumentValidationError" : "Uncaught Error";
  return new Error(`[Request ID: convex-test] Server Error\n${kind}: ${message}`);
}
