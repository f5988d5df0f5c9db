import { expect, test } from "vitest";
import { anyApi } from "convex/server";
import { client, sameFunctions } from "../../../grader";

test("the app's functions are the reference's, the component's are not among them", async () => {
  await sameFunctions();
});

test("names are counted apart", async () => {
  for (const name of ["a", "b", "a"]) await client.mutation(anyApi.index.add, { name });
  expect(await client.query(anyApi.index.count, { name: "a" })).toBe(2);
  expect(await client.query(anyApi.index.count, { name: "c" })).toBe(0);
});
