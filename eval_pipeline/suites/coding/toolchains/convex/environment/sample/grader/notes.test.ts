import { convexTest } from "convex-test";
import { describe, expect, test } from "vitest";
import { api } from "../convex/_generated/api";
import schema from "../convex/schema";

const modules = import.meta.glob("../convex/**/*.ts");

describe("notes", () => {
  test("lists only the owner's notes", async () => {
    const t = convexTest(schema, modules);
    await t.mutation(api.notes.add, { owner: "a", text: "one" });
    await t.mutation(api.notes.add, { owner: "b", text: "two" });
    expect(await t.query(api.notes.listByOwner, { owner: "a" })).toEqual(["one"]);
  });
});
