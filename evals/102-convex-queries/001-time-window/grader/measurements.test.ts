import { convexTest } from "convex-test";
import { expect, test } from "vitest";
import { api } from "../convex/_generated/api";
import schema from "../convex/schema";

const modules = import.meta.glob("../convex/**/*.*s");

const backend = (documentsRead = 1000) =>
  convexTest({ schema, modules, transactionLimits: { documentsRead } });
type Backend = ReturnType<typeof backend>;

/** Stores measurements of times 0, 10, 20, … in an order that is not theirs. */
async function fill(t: Backend, station: string, count: number) {
  await t.run(async (ctx) => {
    for (let step = 0; step < count; step += 1) {
      const number = (step * 7) % count;
      await ctx.db.insert("measurements", { station, takenAt: number * 10, value: number });
    }
  });
}

const times = (found: { takenAt: number }[]) => found.map(({ takenAt }) => takenAt);

test("a window begins at its start and ends before its end", async () => {
  const t = backend();
  await fill(t, "north", 10);
  const args = { station: "north", from: 20, to: 50, limit: 100 };
  expect(await t.query(api.measurements.window, args)).toStrictEqual([
    { takenAt: 40, value: 4 },
    { takenAt: 30, value: 3 },
    { takenAt: 20, value: 2 },
  ]);
});

test("the limit leaves the newest", async () => {
  const t = backend();
  await fill(t, "north", 20);
  const args = { station: "north", from: 0, to: 150, limit: 2 };
  expect(times(await t.query(api.measurements.window, args))).toEqual([140, 130]);
});

test("windows are of one station", async () => {
  const t = backend();
  await fill(t, "north", 5);
  await fill(t, "south", 3);
  const args = { station: "south", from: 0, to: 1000, limit: 10 };
  expect(times(await t.query(api.measurements.window, args))).toEqual([20, 10, 0]);
});

test("times before zero are times", async () => {
  const t = backend();
  await t.run(async (ctx) => {
    await ctx.db.insert("measurements", { station: "north", takenAt: -20, value: -1 });
    await ctx.db.insert("measurements", { station: "north", takenAt: -10, value: -2 });
  });
  const args = { station: "north", from: -20, to: -10, limit: 5 };
  expect(times(await t.query(api.measurements.window, args))).toEqual([-20]);
});

test("an empty window is empty", async () => {
  const t = backend();
  await fill(t, "north", 5);
  const args = { station: "north", from: 30, to: 30, limit: 5 };
  expect(await t.query(api.measurements.window, args)).toEqual([]);
});

test("a window reads no more than it returns", async () => {
  const t = backend(3);
  await fill(t, "north", 50);
  const args = { station: "north", from: 100, to: 400, limit: 3 };
  expect(times(await t.query(api.measurements.window, args))).toEqual([390, 380, 370]);
});

test("the newest before a time is not the one at that time", async () => {
  const t = backend();
  await fill(t, "north", 10);
  const args = { station: "north", at: 50, least: 0 };
  expect(await t.query(api.measurements.before, args)).toStrictEqual({ takenAt: 40, value: 4 });
});

test("smaller values are passed over, an equal one is not", async () => {
  const t = backend();
  await t.run(async (ctx) => {
    for (const [takenAt, value] of [[10, 8], [20, 5], [30, 4.5], [40, 9]]) {
      await ctx.db.insert("measurements", { station: "north", takenAt, value });
    }
  });
  const args = { station: "north", at: 40, least: 5 };
  expect(await t.query(api.measurements.before, args)).toStrictEqual({ takenAt: 20, value: 5 });
});

test("there may be nothing before a time", async () => {
  const t = backend();
  await fill(t, "north", 5);
  await fill(t, "south", 50);
  expect(await t.query(api.measurements.before, { station: "north", at: 0, least: -9 })).toBeNull();
  expect(await t.query(api.measurements.before, { station: "north", at: 99, least: 7 })).toBeNull();
});

test("the search goes no further back than it must", async () => {
  const t = backend(4);
  await t.run(async (ctx) => {
    for (let takenAt = 0; takenAt < 60; takenAt += 1) {
      await ctx.db.insert("measurements", { station: "north", takenAt, value: takenAt % 10 });
    }
  });
  const args = { station: "north", at: 53, least: 9 };
  expect(await t.query(api.measurements.before, args)).toStrictEqual({ takenAt: 49, value: 9 });
});
