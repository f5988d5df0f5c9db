import { env, query } from "./_generated/server";

export const name = query({
  args: {},
  handler: async () => {
    const size: "small" | "large" = env.SIZE;
    return `${env.LIBRARY ?? "Nobody's"} ${size} library at ${env.CONVEX_SITE_URL}`;
  },
});
