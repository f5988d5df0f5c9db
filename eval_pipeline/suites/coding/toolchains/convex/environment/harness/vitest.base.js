// What holds for all tests: no configuration but ours, and what they came to goes out by the channel.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export const project = fileURLToPath(new URL("..", import.meta.url));

export function testsWith(reporter, test, more = {}) {
  return defineConfig({
    root: project,
    envDir: false,
    cacheDir: join(process.cwd(), ".vite"),
    css: { postcss: {} },
    server: { watch: null },
    ...more,
    test: {
      server: { deps: { inline: ["convex-test"] } },
      reporters: [reporter],
      // Answers run in a process of their own, away from the one that reports.
      pool: "forks",
      maxWorkers: 1,
      fsModuleCache: false,
      allowOnly: false,
      watch: false,
      testTimeout: 10_000,
      ...test,
    },
  });
}
