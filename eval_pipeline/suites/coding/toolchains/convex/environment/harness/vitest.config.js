// How tests of our own tasks are run: the grader's files only.
import { ChannelReporter } from "./reporter.js";
import { testsWith } from "./vitest.base.js";

export default testsWith(new ChannelReporter(), {
  include: ["grader/**/*.test.ts"],
  environment: "edge-runtime",
});
