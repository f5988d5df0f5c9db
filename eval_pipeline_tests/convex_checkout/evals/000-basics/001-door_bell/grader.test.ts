import { expect, test } from "vitest";
import { anyApi } from "convex/server";
import { admin, as, client, rows, siteUrl } from "../../../grader";
import { until } from "./until";

const ring = (body: unknown) =>
  fetch(`${siteUrl}/ring`, { method: "POST", body: JSON.stringify(body) });

test("a ring is recorded, and heard a moment later", async () => {
  expect((await ring({ door: "north" })).status).toBe(202);
  expect((await ring({ window: "south" })).status).toBe(400);
  await until(async () => (await rows("rings")).every((one) => one.heard));
  expect((await rows("rings")).map((one) => one.door)).toEqual(["north"]);
});

test("who asks is known", async () => {
  expect(await client.query(anyApi.bell.mine, {})).toBe(null);
  expect(await as("ada").query(anyApi.bell.mine, {})).toBe("ada");
});

test("a photograph can be posted and fetched", async () => {
  const address = await client.mutation(anyApi.bell.upload, {});
  const { storageId } = await (await fetch(address, { method: "POST", body: "a picture" })).json();
  const stored = await client.query(anyApi.bell.photograph, { id: storageId });
  expect(await (await fetch(stored)).text()).toBe("a picture");
});

test("there is a cron", async () => {
  const told = await admin.query("_system/cli/queryTable" as any, { tableName: "_cron_jobs" });
  expect(JSON.stringify(told)).toContain("sweep");
});
