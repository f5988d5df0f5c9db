import { convexTest } from "convex-test";
import { expect, test } from "vitest";
import { api, internal } from "../convex/_generated/api";
import * as members from "../convex/members";
import schema from "../convex/schema";

const modules = import.meta.glob("../convex/**/*.*s");

const backend = () => convexTest(schema, modules);
const everybody = (t: ReturnType<typeof backend>) =>
  t.run((ctx) => ctx.db.query("members").collect());

test("joining stores a guest under the normalized handle", async () => {
  const t = backend();
  const id = await t.mutation(api.members.join, { handle: "  Ada ", email: "ada@club.example" });
  const stored = await t.run((ctx) => ctx.db.get(id));
  expect(stored).toMatchObject({ handle: "ada", email: "ada@club.example", role: "guest" });
});

test("a handle that is taken in other letters is refused", async () => {
  const t = backend();
  await t.mutation(api.members.join, { handle: "ada", email: "ada@club.example" });
  await expect(
    t.mutation(api.members.join, { handle: " ADA", email: "other@club.example" }),
  ).rejects.toMatchObject({ data: "HANDLE_TAKEN" });
  expect(await everybody(t)).toHaveLength(1);
});

test("different handles live side by side", async () => {
  const t = backend();
  await t.mutation(api.members.join, { handle: "ada", email: "a@club.example" });
  await t.mutation(api.members.join, { handle: "adam", email: "b@club.example" });
  expect(await everybody(t)).toHaveLength(2);
});

test("a profile has the handle and the role and nothing else", async () => {
  const t = backend();
  await t.mutation(api.members.join, { handle: "ada", email: "ada@club.example" });
  expect(await t.query(api.members.profile, { handle: " Ada" })).toStrictEqual({
    handle: "ada",
    role: "guest",
  });
});

test("there is no profile of an unknown handle", async () => {
  const t = backend();
  expect(await t.query(api.members.profile, { handle: "nobody" })).toBeNull();
});

test("the backend can change a role", async () => {
  const t = backend();
  await t.mutation(api.members.join, { handle: "ada", email: "ada@club.example" });
  const result = await t.mutation(internal.members.setRole, { handle: "ADA ", role: "steward" });
  expect(result).toBeNull();
  expect((await everybody(t))[0]).toMatchObject({ role: "steward", email: "ada@club.example" });
});

test("the role of somebody unknown can not be changed", async () => {
  const t = backend();
  await expect(
    t.mutation(internal.members.setRole, { handle: "nobody", role: "member" }),
  ).rejects.toMatchObject({ data: "NO_SUCH_MEMBER" });
});

test("a role that does not exist is refused", async () => {
  const t = backend();
  await t.mutation(api.members.join, { handle: "ada", email: "ada@club.example" });
  await expect(
    t.mutation(internal.members.setRole, { handle: "ada", role: "owner" as "guest" }),
  ).rejects.toThrow();
  expect((await everybody(t))[0].role).toBe("guest");
});

test("clients may join and read profiles", () => {
  expect({ ...members.join }).toMatchObject({ isMutation: true, isPublic: true });
  expect({ ...members.profile }).toMatchObject({ isQuery: true, isPublic: true });
});

test("clients can not set roles", () => {
  expect({ ...members.setRole }).toMatchObject({ isMutation: true, isInternal: true });
});

test("every function says what it returns", () => {
  for (const one of [members.join, members.profile, members.setRole]) {
    const described = one as unknown as { exportReturns(): string };
    expect(JSON.parse(described.exportReturns())).toHaveProperty("type");
  }
});
