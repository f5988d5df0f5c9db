// How graders of a checkout are run: as they are, with a client that convex-test or a backend answers.
import { join } from "node:path";
import { ChannelReporter } from "./reporter.js";
import { listen } from "./tunnel.js";
import { project, testsWith } from "./vitest.base.js";

const served = process.env.EVALS_SERVED
  ? { CONVEX_PORT: "3210", CONVEX_SITE_PORT: "3211", CONVEX_ANSWER_PORT: "3212" }
  : {};
const reporter = new ChannelReporter();
const isRemote = process.env.EVALS_SERVED === "remote";
if (isRemote) await listen(reporter, { cloud: served.CONVEX_PORT, site: served.CONVEX_SITE_PORT });

export default testsWith(
  reporter,
  {
    include: ["evals/**/grader.test.ts"],
    environment: "node",
    env: {
      ...served,
      EVALS_REMOTE: isRemote ? "1" : "",
      MODEL_OUTPUT_DIR: join(project, "output"),
    },
  },
  {
    resolve: {
      alias: [
        { find: /^convex\/browser$/, replacement: join(project, "harness/browser.js") },
        // Graders import a constant from what starts backends there, and that imports these.
        { find: /^(?:jszip|get-port)$/, replacement: join(project, "harness/absent.js") },
      ],
    },
  },
);
