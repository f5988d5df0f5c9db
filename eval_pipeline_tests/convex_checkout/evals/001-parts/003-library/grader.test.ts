import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, expect, test } from "vitest";
import { anyApi } from "convex/server";
import { client, empty, put, sameFunctions, sameSchema, siteUrl } from "../../../grader";
import { KEY } from "../../../runner/backend";

const BOOKS = [
  { title: "Rain", shelf: "a", summary: "Weather and how it changes", embedding: [1, 0, 0] },
  { title: "Snow", shelf: "a", summary: "Cold weather", embedding: [0.9, 0.1, 0] },
  { title: "Bread", shelf: "a", summary: "Baking at home", embedding: [0, 1, 0] },
  { title: "Storm", shelf: "b", summary: "Bad weather", embedding: [1, 0, 0] },
];

beforeEach(async () => {
  await empty("books");
  await put("books", BOOKS);
});

test("schema and functions are the reference's", async () => {
  await sameSchema();
  await sameFunctions();
});

test("words are found in summaries of a shelf", async () => {
  const found = await client.query(anyApi.books.find, { shelf: "a", words: "weather" });
  expect(found.sort()).toEqual(["Rain", "Snow"]);
  expect(await client.query(anyApi.books.find, { shelf: "b", words: "baking" })).toEqual([]);
});

test("similar books are the nearest of a shelf", async () => {
  const found = await client.action(anyApi.shelf.similar, { shelf: "a", embedding: [1, 0, 0] });
  expect(found).toEqual(["Rain", "Snow"]);
});

test("marks are made by Node", async () => {
  expect(await client.action(anyApi.shelf.mark, { title: "Rain" })).toBe("a6d20aa6");
});

test("variables are set, and have types", async () => {
  const changes = [
    { name: "SIZE", value: "large" },
    { name: "LIBRARY", value: "Our" },
  ];
  const address = `http://localhost:${process.env.CONVEX_PORT}/api/update_environment_variables`;
  const headers = { Authorization: `Convex ${KEY}` };
  await fetch(address, { method: "POST", headers, body: JSON.stringify({ changes }) });
  expect(await client.query(anyApi.about.name, {})).toBe(`Our large library at ${siteUrl}`);
  const types = readFileSync(join(process.env.MODEL_OUTPUT_DIR!, "convex/_generated/server.d.ts"), "utf8");
  expect(types).toContain("readonly LIBRARY: string | undefined;");
  expect(types).toContain('readonly SIZE: "small" | "large";');
  expect(types).toContain("readonly CONVEX_SITE_URL: string;");
});

/** Has a query run in the deployment, with the project's own modules and a clock that is broken. */
async function probe(args: object): Promise<any> {
  const books = join(process.env.MODEL_OUTPUT_DIR!, "convex/books.ts");
  const inspector = fileURLToPath(new URL("./inspect.mjs", import.meta.url));
  const { outputFiles } = await build({
    stdin: {
      contents: `import { read } from ${JSON.stringify(inspector)};
        export default () => read({ args: ${JSON.stringify(args)}, modules: { books: () => import(${JSON.stringify(books)}) } });`,
      resolveDir: process.env.MODEL_OUTPUT_DIR,
    },
    bundle: true,
    write: false,
    format: "iife",
    globalName: "probe",
    define: { "process.env": "{}" },
  });
  const source = `import { query } from "convex:/_system/repl/wrappers.js";
    export default query({ handler: async () => {
      ${outputFiles[0].text}
      return await probe.default();
    } });`;
  const body = JSON.stringify({ adminKey: KEY, args: {}, bundle: { path: "probe.js", source } });
  const address = `http://localhost:${process.env.CONVEX_PORT}/api/run_test_function`;
  return await (await fetch(address, { method: "POST", body })).json();
}

test("a query can be watched while it runs, and nothing of that remains", async () => {
  const told = await probe({ shelf: "b", words: "weather" });
  expect(told).toMatchObject({ status: "success", value: ["Storm"] });
  expect(told.logLines).toEqual(["[LOG] 'found' 1"]);
  expect(Date.now()).toBeGreaterThan(0);
  const refused = await probe({ shelf: 7 });
  expect(refused.status).toBe("error");
  expect(refused.errorMessage).not.toBe("");
});

test("graders can start the node of the environment", () => {
  const started = spawnSync("node", ["--version"], { env: { PATH: process.env.PATH }, encoding: "utf8" });
  expect(started.stdout.trim()).toBe(process.version);
});
