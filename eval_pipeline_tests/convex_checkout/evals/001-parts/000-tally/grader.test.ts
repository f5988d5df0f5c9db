import { expect, test } from "vitest";
import { anyApi } from "convex/server";
import { admin, client, sameFunctions } from "../../../grader";

test("the app's functions are the reference's, the component's are not among them", async () => {
  await sameFunctions();
});

test("names are counted apart", async () => {
  for (const name of ["a", "b", "a"]) await client.mutation(anyApi.index.add, { name });
  expect(await client.query(anyApi.index.count, { name: "a" })).toBe(2);
  expect(await client.query(anyApi.index.count, { name: "c" })).toBe(0);
});

test("the component's tables are its own", async () => {
  await client.mutation(anyApi.index.add, { name: "mine" });
  const mounted: any[] = await admin.query(anyApi._system.frontend.components.list, {});
  expect(mounted.map(({ path }) => path)).toEqual(["tally"]);
  const marks: any[] = await admin.query(anyApi._system.frontend.listTableScan.default, {
    componentId: mounted[0].id,
    table: "marks",
    limit: 1,
  });
  expect(marks.map(({ name }) => name)).toEqual(["mine"]);
});
