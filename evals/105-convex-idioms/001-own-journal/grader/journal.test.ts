import { convexTest } from "convex-test";
import { expect, test } from "vitest";
import { api } from "../convex/_generated/api";
import schema from "../convex/schema";

const modules = import.meta.glob("../convex/**/*.*s");

/** A backend with callers; two of them have the same name, number and address elsewhere. */
function people() {
  const t = convexTest(schema, modules);
  const person = (issuer: string, subject: string) =>
    t.withIdentity({
      issuer,
      subject,
      tokenIdentifier: `${issuer}|${subject}`,
      name: "Sam",
      email: "sam@post.example",
    });
  return {
    t,
    ada: person("https://one.example", "1"),
    bob: person("https://one.example", "2"),
    otherAda: person("https://two.example", "1"),
  };
}

const entriesIn = (t: ReturnType<typeof people>["t"]) =>
  t.run((ctx) => ctx.db.query("entries").collect());

test("an entry belongs to who wrote it", async () => {
  const { t, ada } = people();
  const id = await ada.mutation(api.journal.write, { text: "rain" });
  expect(await entriesIn(t)).toMatchObject([
    { _id: id, owner: "https://one.example|1", text: "rain" },
  ]);
});

test("everybody sees their own entries, newest first", async () => {
  const { ada, bob } = people();
  const first = await ada.mutation(api.journal.write, { text: "rain" });
  await bob.mutation(api.journal.write, { text: "snow" });
  const second = await ada.mutation(api.journal.write, { text: "sun" });
  expect(await ada.query(api.journal.mine, {})).toStrictEqual([
    { _id: second, text: "sun" },
    { _id: first, text: "rain" },
  ]);
});

test("people of different providers are different people", async () => {
  const { ada, otherAda } = people();
  const id = await ada.mutation(api.journal.write, { text: "rain" });
  expect(await otherAda.query(api.journal.mine, {})).toEqual([]);
  await expect(otherAda.mutation(api.journal.remove, { id })).rejects.toMatchObject({
    data: "NOT_FOUND",
  });
});

test("own entries can be rewritten and removed", async () => {
  const { ada } = people();
  const id = await ada.mutation(api.journal.write, { text: "rain" });
  expect(await ada.mutation(api.journal.rewrite, { id, text: "storm" })).toBeNull();
  expect(await ada.query(api.journal.mine, {})).toEqual([{ _id: id, text: "storm" }]);
  expect(await ada.mutation(api.journal.remove, { id })).toBeNull();
  expect(await ada.query(api.journal.mine, {})).toEqual([]);
});

test("entries of others look as if they did not exist", async () => {
  const { t, ada, bob } = people();
  const id = await ada.mutation(api.journal.write, { text: "rain" });
  const refused = { data: "NOT_FOUND" };
  await expect(bob.mutation(api.journal.rewrite, { id, text: "x" })).rejects.toMatchObject(refused);
  await expect(bob.mutation(api.journal.remove, { id })).rejects.toMatchObject(refused);
  expect(await entriesIn(t)).toMatchObject([{ text: "rain" }]);
});

test("an entry that is gone is not found", async () => {
  const { ada } = people();
  const id = await ada.mutation(api.journal.write, { text: "rain" });
  await ada.mutation(api.journal.remove, { id });
  const refused = { data: "NOT_FOUND" };
  await expect(ada.mutation(api.journal.rewrite, { id, text: "x" })).rejects.toMatchObject(refused);
  await expect(ada.mutation(api.journal.remove, { id })).rejects.toMatchObject(refused);
});

test("who is not signed in sees nothing", async () => {
  const { t, ada } = people();
  await ada.mutation(api.journal.write, { text: "rain" });
  expect(await t.query(api.journal.mine, {})).toEqual([]);
});

test("who is not signed in changes nothing", async () => {
  const { t, ada } = people();
  const id = await ada.mutation(api.journal.write, { text: "rain" });
  const refused = { data: "UNAUTHENTICATED" };
  await expect(t.mutation(api.journal.write, { text: "x" })).rejects.toMatchObject(refused);
  await expect(t.mutation(api.journal.rewrite, { id, text: "x" })).rejects.toMatchObject(refused);
  await expect(t.mutation(api.journal.remove, { id })).rejects.toMatchObject(refused);
  expect(await entriesIn(t)).toMatchObject([{ text: "rain" }]);
});

test("callers can not say who they are", async () => {
  const { ada } = people();
  const disguised = { text: "x", owner: "https://one.example|2" };
  await expect(ada.mutation(api.journal.write, disguised)).rejects.toThrow();
});
