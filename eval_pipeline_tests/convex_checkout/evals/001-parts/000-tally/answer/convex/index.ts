import { v } from "convex/values";
import { components } from "./_generated/api";
import { mutation, query } from "./_generated/server";

export const add = mutation({
  args: { name: v.string() },
  handler: async (ctx, { name }) => {
    await ctx.runMutation(components.tally.counting.add, { name });
  },
});

export const count = query({
  args: { name: v.string() },
  handler: async (ctx, { name }): Promise<number> =>
    await ctx.runQuery(components.tally.counting.count, { name }),
});
