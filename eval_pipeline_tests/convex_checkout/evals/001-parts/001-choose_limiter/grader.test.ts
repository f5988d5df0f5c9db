import { expect, test } from "vitest";
import { projectFile } from "../../../grader/files";

test("a component is chosen", () => {
  expect(JSON.parse(projectFile("package.json")).dependencies).toHaveProperty("@convex-dev/rate-limiter");
});

test("and no backend is there", () => {
  expect(process.env.CONVEX_PORT).toBeUndefined();
});
