import { convexTest } from "convex-test";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { api, internal } from "../convex/_generated/api";
import schema from "../convex/schema";
import * as webhooks from "../convex/webhooks";

const modules = import.meta.glob("../convex/**/*.*s");
const JOB = { url: "https://shop.example/hook", payload: '{"order": 7}' };
const START = Date.UTC(2031, 4, 4);

type Sent = { url: string; method: string; body: string; after: number };

/** A backend whose receiver answers with these statuses, one after the other; 0 is unreachable. */
function backend(...statuses: number[]) {
  const sent: Sent[] = [];
  vi.stubGlobal("fetch", async (input: RequestInfo | URL, init?: RequestInit) => {
    const request = new Request(input, init);
    const { url, method } = request;
    sent.push({ url, method, body: await request.text(), after: Date.now() - START });
    const status = statuses[Math.min(sent.length, statuses.length) - 1];
    if (status === 0) throw new TypeError("fetch failed");
    return new Response(null, { status });
  });
  const t = convexTest(schema, modules);
  const finish = () => t.finishAllScheduledFunctions(() => vi.advanceTimersToNextTimer());
  return { t, sent, finish };
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.setSystemTime(START);
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("a delivery waits until it is sent", async () => {
  const { t, sent, finish } = backend(200);
  const id = await t.mutation(api.webhooks.enqueue, JOB);
  expect(await t.run((ctx) => ctx.db.get(id))).toMatchObject({
    ...JOB,
    status: "pending",
    attempts: 0,
  });
  expect(sent).toEqual([]);
  await finish();
  expect(sent).toMatchObject([{ url: JOB.url, method: "POST", body: JOB.payload }]);
  expect(await t.query(api.webhooks.status, { id })).toStrictEqual({ status: "sent", attempts: 1 });
});

test.each([200, 201, 204, 299])("status %i is a success", async (status) => {
  const { t, sent, finish } = backend(status);
  const id = await t.mutation(api.webhooks.enqueue, JOB);
  await finish();
  expect(await t.query(api.webhooks.status, { id })).toEqual({ status: "sent", attempts: 1 });
  expect(sent).toHaveLength(1);
});

test.each([
  ["status 500", 500],
  ["status 404", 404],
  ["status 304", 304],
  ["no connection", 0],
])("after %s it is tried again", async (_, status) => {
  const { t, sent, finish } = backend(status, 200);
  const id = await t.mutation(api.webhooks.enqueue, JOB);
  await finish();
  expect(await t.query(api.webhooks.status, { id })).toEqual({ status: "sent", attempts: 2 });
  expect(sent).toHaveLength(2);
  expect(sent[1]).toMatchObject({ method: "POST", body: JOB.payload });
});

test("a delivery stays pending between two attempts", async () => {
  const { t } = backend(500);
  const id = await t.run((ctx) =>
    ctx.db.insert("deliveries", { ...JOB, status: "pending", attempts: 2 }),
  );
  expect(await t.action(internal.webhooks.attempt, { id })).toBeNull();
  expect(await t.query(api.webhooks.status, { id })).toEqual({ status: "pending", attempts: 3 });
});

test("waiting times double", async () => {
  const { t, sent, finish } = backend(500, 0, 500, 200);
  await t.mutation(api.webhooks.enqueue, JOB);
  await finish();
  const [first, ...others] = sent.map(({ after }) => after);
  expect(others.map((after) => Math.round((after - first) / 1000))).toEqual([1, 3, 7]);
});

test("after four failures it is given up", async () => {
  const { t, sent, finish } = backend(500);
  const id = await t.mutation(api.webhooks.enqueue, JOB);
  await finish();
  expect(sent).toHaveLength(4);
  expect(await t.query(api.webhooks.status, { id })).toEqual({ status: "failed", attempts: 4 });
});

test("the fourth attempt may succeed", async () => {
  const { t, finish } = backend(500, 500, 500, 200);
  const id = await t.mutation(api.webhooks.enqueue, JOB);
  await finish();
  expect(await t.query(api.webhooks.status, { id })).toEqual({ status: "sent", attempts: 4 });
});

test.each(["sent", "failed"] as const)("what is %s is not sent again", async (status) => {
  const { t, sent } = backend(200);
  const id = await t.run((ctx) => ctx.db.insert("deliveries", { ...JOB, status, attempts: 3 }));
  expect(await t.action(internal.webhooks.attempt, { id })).toBeNull();
  expect(sent).toEqual([]);
  expect(await t.query(api.webhooks.status, { id })).toEqual({ status, attempts: 3 });
});

test("what is gone is not sent and has no status", async () => {
  const { t, sent } = backend(200);
  const id = await t.run((ctx) =>
    ctx.db.insert("deliveries", { ...JOB, status: "pending", attempts: 0 }),
  );
  await t.run((ctx) => ctx.db.delete(id));
  expect(await t.action(internal.webhooks.attempt, { id })).toBeNull();
  expect(sent).toEqual([]);
  expect(await t.query(api.webhooks.status, { id })).toBeNull();
});

test("clients can not make attempts", () => {
  expect({ ...webhooks.attempt }).toMatchObject({ isAction: true, isInternal: true });
  expect({ ...webhooks.enqueue }).toMatchObject({ isMutation: true, isPublic: true });
});
