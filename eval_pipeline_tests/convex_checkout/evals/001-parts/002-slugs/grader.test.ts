import { expect, test } from "vitest";

test("words are joined", async () => {
  const { slugOf } = await import(/* @vite-ignore */ `${process.env.MODEL_OUTPUT_DIR}/slugs.ts`);
  expect(slugOf("Rain, and more RAIN!")).toBe("rain-and-more-rain");
  expect(slugOf("!")).toBe("");
});
