import { v } from "convex/values";
import { mutation, query } from "./_generated/server";

export const add = mutation({
  args: { name: v.string() },
  handler: async (ctx, { name }) => {
    await ctx.db.insert("marks", { name });
  },
});

export const count = query({
  args: { name: v.string() },
  handler: async (ctx, { name }) => {
    const marks = await ctx.db
      .query("marks")
      .withIndex("by_name", (q) => q.eq("name", name))
      .take(1000);
    return marks.length;
  },
});
