// How tests are run: the grader's files only, and what they came to goes out by the channel.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { ChannelReporter } from "./reporter.js";

const project = fileURLToPath(new URL("..", import.meta.url));

export default defineConfig({
  root: project,
  envDir: false,
  cacheDir: join(process.cwd(), ".vite"),
  css: { postcss: {} },
  server: { watch: null },
  test: {
    include: ["grader/**/*.test.ts"],
    environment: "edge-runtime",
    server: { deps: { inline: ["convex-test"] } },
    reporters: [new ChannelReporter()],
    // Answers run in a process of their own, away from the one that reports.
    pool: "forks",
    maxWorkers: 1,
    fsModuleCache: false,
    allowOnly: false,
    watch: false,
    testTimeout: 10_000,
  },
});
