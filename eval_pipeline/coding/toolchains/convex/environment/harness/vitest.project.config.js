// How graders of a checkout are run: as they are, with a client that convex-test answers.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { ChannelReporter } from "./reporter.js";
import { listen } from "./tunnel.js";

const project = fileURLToPath(new URL("..", import.meta.url));
const served = process.env.EVALS_SERVED
  ? { CONVEX_PORT: "3210", CONVEX_SITE_PORT: "3211", CONVEX_ANSWER_PORT: "3212" }
  : {};
const reporter = new ChannelReporter();
const isRemote = process.env.EVALS_SERVED === "remote";
if (isRemote) await listen(reporter, { cloud: served.CONVEX_PORT, site: served.CONVEX_SITE_PORT });

export default defineConfig({
  root: project,
  envDir: false,
  cacheDir: join(process.cwd(), ".vite"),
  css: { postcss: {} },
  server: { watch: null },
  resolve: {
    alias: [{ find: /^convex\/browser$/, replacement: join(project, "harness/browser.js") }],
  },
  test: {
    include: ["evals/**/grader.test.ts"],
    environment: "node",
    env: { ...served, EVALS_REMOTE: isRemote ? "1" : "", MODEL_OUTPUT_DIR: join(project, "output") },
    server: { deps: { inline: ["convex-test"] } },
    reporters: [reporter],
    // Answers run in a process of their own, away from the one that reports.
    pool: "forks",
    maxWorkers: 1,
    fsModuleCache: false,
    allowOnly: false,
    watch: false,
    testTimeout: 10_000,
  },
});
