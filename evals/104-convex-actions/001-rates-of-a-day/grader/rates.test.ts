import { convexTest } from "convex-test";
import { afterEach, expect, test, vi } from "vitest";
import { api, internal } from "../convex/_generated/api";
import * as rates from "../convex/rates";
import schema from "../convex/schema";

const modules = import.meta.glob("../convex/**/*.*s");
const DAY = "2031-05-04";

const backend = () => convexTest(schema, modules);

/** From now on the server answers so; returns the requests that it gets. */
function serverAnswers(body: unknown, status = 200) {
  const requests: { url: string; method: string }[] = [];
  const text = typeof body === "string" ? body : JSON.stringify(body);
  vi.stubGlobal("fetch", async (input: RequestInfo | URL, init?: RequestInit) => {
    const request = new Request(input, init);
    requests.push({ url: request.url, method: request.method });
    return new Response(text, { status });
  });
  return requests;
}

afterEach(() => {
  vi.unstubAllGlobals();
});

test("a day's rates are fetched once and stored", async () => {
  const t = backend();
  const requests = serverAnswers({ rates: { USD: 1.1, CHF: 0.95 } });
  expect(await t.action(api.rates.importDay, { day: DAY })).toStrictEqual({ stored: 2 });
  expect(requests).toEqual([{ url: `https://rates.example/v1/${DAY}`, method: "GET" }]);
  expect(await t.query(api.rates.onDay, { day: DAY })).toStrictEqual([
    { currency: "CHF", perEuro: 0.95 },
    { currency: "USD", perEuro: 1.1 },
  ]);
});

test("importing again replaces the day's rates", async () => {
  const t = backend();
  serverAnswers({ rates: { USD: 1.1, CHF: 0.95 } });
  await t.action(api.rates.importDay, { day: DAY });
  serverAnswers({ rates: { USD: 1.2 } });
  expect(await t.action(api.rates.importDay, { day: DAY })).toEqual({ stored: 1 });
  expect(await t.query(api.rates.onDay, { day: DAY })).toEqual([{ currency: "USD", perEuro: 1.2 }]);
});

test("other days are left alone", async () => {
  const t = backend();
  serverAnswers({ rates: { USD: 1.1 } });
  await t.action(api.rates.importDay, { day: "2031-05-03" });
  await t.action(api.rates.importDay, { day: DAY });
  serverAnswers({ rates: {} });
  expect(await t.action(api.rates.importDay, { day: DAY })).toEqual({ stored: 0 });
  expect(await t.query(api.rates.onDay, { day: DAY })).toEqual([]);
  expect(await t.query(api.rates.onDay, { day: "2031-05-03" })).toHaveLength(1);
});

test.each([404, 500])("a response of %i changes nothing", async (status) => {
  const t = backend();
  serverAnswers({ rates: { USD: 1.1 } });
  await t.action(api.rates.importDay, { day: DAY });
  serverAnswers({ rates: { USD: 9 } }, status);
  await expect(t.action(api.rates.importDay, { day: DAY })).rejects.toMatchObject({
    data: { code: "UPSTREAM", status },
  });
  expect(await t.query(api.rates.onDay, { day: DAY })).toEqual([{ currency: "USD", perEuro: 1.1 }]);
});

test.each([
  ["that is no JSON", "<html>"],
  ["that is null", "null"],
  ["that is a list", [1, 2]],
  ["without rates", { error: "later" }],
  ["with rates of null", { rates: null }],
  ["with a list of rates", { rates: [1.1] }],
  ["with a rate in quotes", { rates: { CHF: 0.95, USD: "1.1" } }],
  ["with a rate of null", { rates: { CHF: 0.95, USD: null } }],
  ["with a rate of zero", { rates: { CHF: 0.95, USD: 0 } }],
  ["with a negative rate", { rates: { CHF: 0.95, USD: -1 } }],
])("a body %s changes nothing", async (_, body) => {
  const t = backend();
  serverAnswers({ rates: { USD: 1.1 } });
  await t.action(api.rates.importDay, { day: DAY });
  serverAnswers(body);
  await expect(t.action(api.rates.importDay, { day: DAY })).rejects.toMatchObject({
    data: { code: "BAD_DATA" },
  });
  expect(await t.query(api.rates.onDay, { day: DAY })).toEqual([{ currency: "USD", perEuro: 1.1 }]);
});

test("one mutation replaces a day", async () => {
  const t = backend();
  const given = [
    { currency: "USD", perEuro: 1.3 },
    { currency: "CHF", perEuro: 0.9 },
  ];
  await t.mutation(internal.rates.replaceDay, { day: DAY, rates: [{ currency: "X", perEuro: 1 }] });
  expect(await t.mutation(internal.rates.replaceDay, { day: DAY, rates: given })).toBe(2);
  expect(await t.query(api.rates.onDay, { day: DAY })).toEqual([given[1], given[0]]);
});

test("readers never see a mixture of old and new rates", async () => {
  const t = backend();
  serverAnswers({ rates: { USD: 1, CHF: 1, JPY: 1 } });
  await t.action(api.rates.importDay, { day: DAY });
  serverAnswers({ rates: { USD: 2, CHF: 2, JPY: 2 } });
  const seen = new Set<string>();
  let running = true;
  const importing = t.action(api.rates.importDay, { day: DAY }).finally(() => {
    running = false;
  });
  for (let polls = 0; running && polls < 5000; polls += 1) {
    // Most of the time nothing but what already runs gets a turn between two looks.
    if (polls % 50 === 49) await new Promise((resolve) => setTimeout(resolve, 0));
    const rates = await t.query(api.rates.onDay, { day: DAY });
    seen.add(rates.map(({ perEuro }) => perEuro).join());
  }
  await importing;
  seen.add("2,2,2");
  expect([...seen].filter((rates) => rates !== "1,1,1")).toEqual(["2,2,2"]);
});

test("only the backend can replace a day", () => {
  expect({ ...rates.importDay }).toMatchObject({ isAction: true, isPublic: true });
  expect({ ...rates.replaceDay }).toMatchObject({ isMutation: true, isInternal: true });
  expect({ ...rates.onDay }).toMatchObject({ isQuery: true, isPublic: true });
});
