import { convexTest } from "convex-test";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { api, internal } from "../convex/_generated/api";
import * as purging from "../convex/purging";
import schema from "../convex/schema";

const modules = import.meta.glob("../convex/**/*.*s");

/** A backend with so many events of tenant "a" and three of "b". */
async function backend(count: number) {
  const t = convexTest({
    schema,
    modules,
    transactionLimits: { documentsRead: 75, documentsWritten: 60 },
  });
  for (let first = 0; first < count; first += 50) {
    await t.run(async (ctx) => {
      for (let number = first; number < Math.min(count, first + 50); number += 1) {
        await ctx.db.insert("events", { tenant: "a", body: `${number}` });
      }
    });
  }
  await t.run(async (ctx) => {
    for (const body of ["x", "y", "z"]) await ctx.db.insert("events", { tenant: "b", body });
  });
  const left = (tenant: string) =>
    t.run(async (ctx) => {
      const found = await ctx.db
        .query("events")
        .withIndex("by_tenant", (q) => q.eq("tenant", tenant))
        .take(70);
      return found.length;
    });
  const finish = () => t.finishAllScheduledFunctions(() => vi.runAllTimers());
  const scheduled = () =>
    t.run(async (ctx) => (await ctx.db.system.query("_scheduled_functions").collect()).length);
  return { t, left, finish, scheduled };
}

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

test("everything of the tenant is removed in the end, and nothing else", async () => {
  const { t, left, finish } = await backend(130);
  expect(await t.mutation(api.purging.start, { tenant: "a" })).toBeNull();
  await finish();
  expect(await t.query(api.purging.progress, { tenant: "a" })).toStrictEqual({
    removed: 130,
    done: true,
  });
  expect([await left("a"), await left("b")]).toEqual([0, 3]);
});

test("the start itself removes nothing", async () => {
  const { t, left, finish, scheduled } = await backend(10);
  await t.mutation(api.purging.start, { tenant: "a" });
  expect(await left("a")).toBe(10);
  expect(await t.query(api.purging.progress, { tenant: "a" })).toEqual({ removed: 0, done: false });
  expect(await scheduled()).toBe(1);
  await finish();
});

test("a step removes 25 events and tells so", async () => {
  const { t, left, finish } = await backend(40);
  await t.run((ctx) => ctx.db.insert("purges", { tenant: "a", removed: 0, done: false }));
  expect(await t.mutation(internal.purging.step, { tenant: "a" })).toBe(25);
  expect(await left("a")).toBe(15);
  expect(await t.query(api.purging.progress, { tenant: "a" })).toEqual({
    removed: 25,
    done: false,
  });
  await finish();
  expect(await t.query(api.purging.progress, { tenant: "a" })).toEqual({ removed: 40, done: true });
});

test("the last step schedules nothing", async () => {
  const { t, scheduled } = await backend(5);
  await t.run((ctx) => ctx.db.insert("purges", { tenant: "a", removed: 50, done: false }));
  expect(await t.mutation(internal.purging.step, { tenant: "a" })).toBe(5);
  expect(await t.query(api.purging.progress, { tenant: "a" })).toEqual({ removed: 55, done: true });
  expect(await scheduled()).toBe(0);
});

test.each([0, 1, 24, 25, 26, 50])("%i events are removed and counted", async (count) => {
  const { t, left, finish } = await backend(count);
  await t.mutation(api.purging.start, { tenant: "a" });
  await finish();
  expect(await t.query(api.purging.progress, { tenant: "a" })).toEqual({
    removed: count,
    done: true,
  });
  expect(await left("a")).toBe(0);
});

test("a purge that is running is not started again", async () => {
  const { t, finish, scheduled } = await backend(30);
  await t.run((ctx) => ctx.db.insert("purges", { tenant: "a", removed: 75, done: false }));
  expect(await t.mutation(api.purging.start, { tenant: "a" })).toBeNull();
  expect(await t.query(api.purging.progress, { tenant: "a" })).toEqual({
    removed: 75,
    done: false,
  });
  expect(await scheduled()).toBe(0);
  await finish();
});

test("a purge that is done can be started anew", async () => {
  const { t, left, finish } = await backend(30);
  await t.run((ctx) => ctx.db.insert("purges", { tenant: "a", removed: 75, done: true }));
  await t.mutation(api.purging.start, { tenant: "a" });
  await finish();
  expect(await t.query(api.purging.progress, { tenant: "a" })).toEqual({ removed: 30, done: true });
  expect(await left("a")).toBe(0);
  expect(await t.run((ctx) => ctx.db.query("purges").collect())).toHaveLength(1);
});

test.each([
  ["without a purge", null],
  ["after it", true],
])("a step %s does nothing", async (_, done) => {
  const { t, left, scheduled } = await backend(30);
  if (done) {
    await t.run((ctx) => ctx.db.insert("purges", { tenant: "a", removed: 75, done }));
  }
  expect(await t.mutation(internal.purging.step, { tenant: "a" })).toBe(0);
  expect([await left("a"), await scheduled()]).toEqual([30, 0]);
});

test("who never had a purge has no progress", async () => {
  const { t } = await backend(0);
  expect(await t.query(api.purging.progress, { tenant: "a" })).toBeNull();
});

test("clients can not take steps", () => {
  expect({ ...purging.step }).toMatchObject({ isMutation: true, isInternal: true });
  expect({ ...purging.start }).toMatchObject({ isMutation: true, isPublic: true });
  expect({ ...purging.progress }).toMatchObject({ isQuery: true, isPublic: true });
});
