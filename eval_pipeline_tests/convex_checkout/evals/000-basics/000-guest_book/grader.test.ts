import { beforeEach, expect, test } from "vitest";
import { admin, client, empty, put, rows, sameFunctions, sameSchema } from "../../../grader";
import { api, internal } from "./answer/convex/_generated/api";
import type { Doc } from "./answer/convex/_generated/dataModel";

beforeEach(async () => await empty("guests"));

test("the schema is the reference's", async () => await sameSchema());

test("the functions are the reference's", async () => await sameFunctions());

test("guests are listed in the order of signing", async () => {
  await client.mutation(api.guests.sign, { name: "Zoe", seats: 2 });
  await client.mutation(api.guests.sign, { name: "Ada", seats: 1 });
  expect(await client.query(api.guests.list, {})).toEqual(["Zoe", "Ada"]);
  const stored = (await rows("guests")) as Doc<"guests">[];
  expect(stored.map((guest) => guest.seats)).toEqual([2, 1]);
});

test("what can not be is refused", async () => {
  const sign = (args: any) => client.mutation(api.guests.sign, args);
  await expect(sign({ name: "Ada", seats: 0 })).rejects.toThrow("No seat");
  await expect(sign({ name: "Ada", seats: "one" })).rejects.toThrow(/ArgumentValidationError/);
  await expect(sign({ name: "Ada", seats: 1, extra: true })).rejects.toThrow(/ArgumentValidationError/);
  await expect(put("guests", [{ name: 1, seats: 1 }])).rejects.toThrow();
});

test("the sum is for the inside only", async () => {
  await put("guests", [{ name: "Ada", seats: 3 }, { name: "Bo", seats: 4 }]);
  expect(await admin.query(internal.guests.total as any, {})).toBe(7);
  await expect(client.query(internal.guests.total as any, {})).rejects.toThrow(/public function/);
});
