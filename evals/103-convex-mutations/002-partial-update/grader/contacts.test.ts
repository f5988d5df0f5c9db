import { convexTest } from "convex-test";
import { expect, test } from "vitest";
import { api } from "../convex/_generated/api";
import type { Id } from "../convex/_generated/dataModel";
import schema from "../convex/schema";

const modules = import.meta.glob("../convex/**/*.*s");

const ADA = { name: "Ada", phone: "123", email: "ada@post.example", tags: ["work", "chess"] };

type Changes = Omit<typeof api.contacts.update._args, "id">;

/** What becomes of a contact that is updated once, without its system fields. */
async function updated(before: typeof ADA | Pick<typeof ADA, "name" | "tags">, changes: Changes) {
  const t = convexTest(schema, modules);
  const id = await t.run((ctx) => ctx.db.insert("contacts", before));
  expect(await t.mutation(api.contacts.update, { id, ...changes })).toBeNull();
  return await t.run(async (ctx) => {
    const { _id, _creationTime, ...fields } = (await ctx.db.get(id as Id<"contacts">))!;
    return fields;
  });
}

test("an update of nothing changes nothing", async () => {
  expect(await updated(ADA, {})).toStrictEqual(ADA);
});

test("one field changes and the others stay", async () => {
  expect(await updated(ADA, { phone: "456" })).toStrictEqual({ ...ADA, phone: "456" });
  expect(await updated(ADA, { name: "Ada L." })).toStrictEqual({ ...ADA, name: "Ada L." });
  expect(await updated(ADA, { addTags: ["x"] })).toStrictEqual({
    ...ADA,
    tags: ["work", "chess", "x"],
  });
});

test("null removes a field", async () => {
  const { email, ...rest } = ADA;
  expect(await updated(ADA, { email: null })).toStrictEqual(rest);
  expect(email).toBeDefined();
});

test("null for a field that is missing is fine", async () => {
  const bare = { name: "Bo", tags: [] };
  expect(await updated(bare, { phone: null, email: null })).toStrictEqual(bare);
});

test("a missing field can be added", async () => {
  const bare = { name: "Bo", tags: [] };
  expect(await updated(bare, { email: "bo@post.example" })).toStrictEqual({
    ...bare,
    email: "bo@post.example",
  });
});

test("white space around values is dropped", async () => {
  expect(await updated(ADA, { name: "  Ada L. ", phone: "\t456 " })).toStrictEqual({
    ...ADA,
    name: "Ada L.",
    phone: "456",
  });
});

test.each(["", "   "])("a phone of %j removes the field", async (phone) => {
  const { name, email, tags } = ADA;
  expect(await updated(ADA, { phone })).toStrictEqual({ name, email, tags });
});

test.each(["", " \n"])("a name of %j is refused, with everything else", async (name) => {
  const t = convexTest(schema, modules);
  const id = await t.run((ctx) => ctx.db.insert("contacts", ADA));
  await expect(
    t.mutation(api.contacts.update, { id, name, phone: null, addTags: ["x"] }),
  ).rejects.toMatchObject({ data: "NAME_REQUIRED" });
  expect(await t.run((ctx) => ctx.db.get(id))).toMatchObject(ADA);
});

test("tags keep their order and new ones follow", async () => {
  const before = { name: "Bo", tags: ["c", "a", "b"] };
  const after = await updated(before, { removeTags: ["a", "nothing"], addTags: ["z", "c", "y"] });
  expect(after.tags).toEqual(["c", "b", "z", "y"]);
});

test("a tag that is removed and added is there in the end", async () => {
  const before = { name: "Bo", tags: ["a", "b"] };
  const after = await updated(before, { removeTags: ["a"], addTags: ["a"] });
  expect(after.tags).toEqual(["b", "a"]);
});

test("a tag that is given twice is added once", async () => {
  const after = await updated({ name: "Bo", tags: ["a"] }, { addTags: ["n", "a", "n"] });
  expect(after.tags).toEqual(["a", "n"]);
});

test("a contact that is gone can not be updated", async () => {
  const t = convexTest(schema, modules);
  const id = await t.run((ctx) => ctx.db.insert("contacts", ADA));
  await t.run((ctx) => ctx.db.delete(id));
  await expect(t.mutation(api.contacts.update, { id, name: "B" })).rejects.toMatchObject({
    data: "NOT_FOUND",
  });
});

test("a name can not be null", async () => {
  const t = convexTest(schema, modules);
  const id = await t.run((ctx) => ctx.db.insert("contacts", ADA));
  await expect(
    t.mutation(api.contacts.update, { id, name: null as unknown as string }),
  ).rejects.toThrow();
});
