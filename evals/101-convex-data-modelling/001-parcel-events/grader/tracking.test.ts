import { convexTest } from "convex-test";
import { expect, test } from "vitest";
import { api } from "../convex/_generated/api";
import schema from "../convex/schema";

const modules = import.meta.glob("../convex/**/*.*s");

const backend = () => convexTest(schema, modules);
type Backend = ReturnType<typeof backend>;

const scanned = { kind: "scanned", depot: "north" } as const;
const delivered = { kind: "delivered", signedBy: "Ada" } as const;
const failed = { kind: "failed", reason: "absent" } as const;

const insert = (t: Backend, document: object) =>
  t.run((ctx) => ctx.db.insert("parcelEvents", document as never));
const stateAfter = async (...events: [number, unknown][]) => {
  const t = backend();
  for (const [at, detail] of events) {
    await t.mutation(api.tracking.add, { parcel: "p1", at, detail: detail as typeof scanned });
  }
  return await t.query(api.tracking.state, { parcel: "p1" });
};

test.each([
  ["a scan", scanned],
  ["a delivery with a name", delivered],
  ["a delivery without one", { kind: "delivered", signedBy: null }],
  ["a failure", failed],
  ["a failure with another attempt", { kind: "failed", reason: "damaged", retryAt: 9 }],
])("the database takes %s", async (_, detail) => {
  const t = backend();
  await insert(t, { parcel: "p1", at: 5, detail });
  expect(await t.query(api.tracking.history, { parcel: "p1" })).toStrictEqual([{ at: 5, detail }]);
});

test.each([
  ["a scan without a depot", { kind: "scanned" }],
  ["a scan that is signed", { kind: "scanned", depot: "north", signedBy: "Ada" }],
  ["a delivery that says nothing of a name", { kind: "delivered" }],
  ["a delivery at a depot", { kind: "delivered", signedBy: null, depot: "north" }],
  ["a failure without a reason", { kind: "failed" }],
  ["a failure for another reason", { kind: "failed", reason: "raining" }],
  ["a failure that is tried again at null", { kind: "failed", reason: "absent", retryAt: null }],
  ["another kind", { kind: "lost" }],
  ["text", "scanned"],
])("the database refuses %s", async (_, detail) => {
  await expect(insert(backend(), { parcel: "p1", at: 5, detail })).rejects.toThrow();
});

test("the database refuses further fields of an event", async () => {
  const document = { parcel: "p1", at: 5, detail: scanned, depot: "north" };
  await expect(insert(backend(), document)).rejects.toThrow();
});

test("adding refuses what the database refuses", async () => {
  const t = backend();
  const detail = { kind: "scanned", depot: "north", reason: "absent" } as typeof scanned;
  await expect(t.mutation(api.tracking.add, { parcel: "p1", at: 5, detail })).rejects.toThrow();
});

test("the history is of one parcel, by time", async () => {
  const t = backend();
  const id = await t.mutation(api.tracking.add, { parcel: "p1", at: 30, detail: delivered });
  await t.mutation(api.tracking.add, { parcel: "p1", at: 10, detail: scanned });
  await t.mutation(api.tracking.add, { parcel: "p2", at: 20, detail: failed });
  expect(await t.query(api.tracking.history, { parcel: "p1" })).toStrictEqual([
    { at: 10, detail: scanned },
    { at: 30, detail: delivered },
  ]);
  expect(await t.run((ctx) => ctx.db.get(id))).toMatchObject({ parcel: "p1", at: 30 });
});

test("a parcel without events is unknown", async () => {
  expect(await stateAfter()).toBe("unknown");
});

test("a parcel moves after a scan", async () => {
  expect(await stateAfter([10, failed], [20, scanned])).toBe("moving");
});

test("a delivery that is reported before an earlier scan stays the last word", async () => {
  expect(await stateAfter([30, delivered], [20, scanned])).toBe("delivered");
});

test("a failure is final unless it is tried again", async () => {
  expect(await stateAfter([10, failed])).toBe("failed");
  expect(await stateAfter([10, { ...failed, retryAt: 99 }])).toBe("moving");
});

test("another attempt may be due at time zero", async () => {
  expect(await stateAfter([-5, { ...failed, retryAt: 0 }])).toBe("moving");
});

test("of events at the same time the one added last counts", async () => {
  expect(await stateAfter([10, scanned], [10, delivered])).toBe("delivered");
  expect(await stateAfter([10, delivered], [10, scanned])).toBe("moving");
});
