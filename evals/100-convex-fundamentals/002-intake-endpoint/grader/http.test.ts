import { convexTest } from "convex-test";
import { expect, test } from "vitest";
import { internal } from "../convex/_generated/api";
import * as readings from "../convex/readings";
import schema from "../convex/schema";

const modules = import.meta.glob("../convex/**/*.*s");

const backend = () => convexTest(schema, modules);
type Backend = ReturnType<typeof backend>;

const post = (t: Backend, body: string) => t.fetch("/readings", { method: "POST", body });
const stored = (t: Backend) => t.run((ctx) => ctx.db.query("readings").collect());

async function answerOf(response: Response) {
  expect(response.headers.get("Content-Type")).toMatch(/^application\/json/);
  return { status: response.status, body: await response.json() };
}

test("a reading is stored and its id is told", async () => {
  const t = backend();
  const answer = await answerOf(await post(t, '{"sensor": "attic", "celsius": 21.5}'));
  const [reading] = await stored(t);
  expect(answer).toEqual({ status: 201, body: { id: reading._id } });
  expect(reading).toMatchObject({ sensor: "attic", celsius: 21.5 });
});

test("zero degrees are a temperature", async () => {
  const t = backend();
  expect((await post(t, '{"sensor": "yard", "celsius": 0}')).status).toBe(201);
  const answer = await answerOf(await t.fetch("/readings/latest?sensor=yard"));
  expect(answer).toEqual({ status: 200, body: { celsius: 0 } });
});

test("other fields are ignored", async () => {
  const t = backend();
  const response = await post(t, '{"sensor": "attic", "celsius": 3, "battery": 0.7}');
  expect(response.status).toBe(201);
  expect((await stored(t))[0]).not.toHaveProperty("battery");
});

test.each([
  ["text that is no JSON", "attic 21.5"],
  ["nothing", ""],
  ["null", "null"],
  ["a list", '["attic", 21.5]'],
  ["a string", '"attic"'],
  ["no sensor", '{"celsius": 21.5}'],
  ["an empty sensor", '{"sensor": "", "celsius": 21.5}'],
  ["a sensor that is a number", '{"sensor": 7, "celsius": 21.5}'],
  ["no temperature", '{"sensor": "attic"}'],
  ["a temperature in quotes", '{"sensor": "attic", "celsius": "21.5"}'],
  ["a temperature that is null", '{"sensor": "attic", "celsius": null}'],
])("a body with %s is refused", async (_, body) => {
  const t = backend();
  const answer = await answerOf(await post(t, body));
  expect(answer).toEqual({ status: 400, body: { error: "bad_request" } });
  expect(await stored(t)).toEqual([]);
});

test("the latest reading is the one stored last, of that sensor", async () => {
  const t = backend();
  await post(t, '{"sensor": "attic", "celsius": 30}');
  await post(t, '{"sensor": "attic", "celsius": 18.25}');
  await post(t, '{"sensor": "cellar", "celsius": 9}');
  const answer = await answerOf(await t.fetch("/readings/latest?sensor=attic"));
  expect(answer).toEqual({ status: 200, body: { celsius: 18.25 } });
});

test("names of sensors may need escaping", async () => {
  const t = backend();
  await post(t, '{"sensor": "room 1 & 2", "celsius": 20}');
  const answer = await answerOf(await t.fetch("/readings/latest?sensor=room%201%20%26%202"));
  expect(answer).toEqual({ status: 200, body: { celsius: 20 } });
});

test("a sensor that never reported is not found", async () => {
  const answer = await answerOf(await backend().fetch("/readings/latest?sensor=moon"));
  expect(answer).toEqual({ status: 404, body: { error: "not_found" } });
});

test.each(["/readings/latest", "/readings/latest?sensor="])("%s lacks a sensor", async (path) => {
  const answer = await answerOf(await backend().fetch(path));
  expect(answer).toEqual({ status: 400, body: { error: "bad_request" } });
});

test("clients can not call the functions", async () => {
  expect({ ...readings.record }).toMatchObject({ isMutation: true, isInternal: true });
  expect({ ...readings.latest }).toMatchObject({ isQuery: true, isInternal: true });
  expect(await backend().query(internal.readings.latest, { sensor: "moon" })).toBeNull();
});
