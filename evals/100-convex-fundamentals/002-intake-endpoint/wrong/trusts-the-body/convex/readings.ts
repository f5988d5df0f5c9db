import { v } from "convex/values";
import { internalMutation, internalQuery } from "./_generated/server";

export const record = internalMutation({
  args: { sensor: v.string(), celsius: v.number() },
  returns: v.id("readings"),
  handler: async (ctx, args) => await ctx.db.insert("readings", args),
});

export const latest = internalQuery({
  args: { sensor: v.string() },
  returns: v.union(v.null(), v.object({ celsius: v.number() })),
  handler: async (ctx, args) => {
    const reading = await ctx.db
      .query("readings")
      .withIndex("by_sensor", (q) => q.eq("sensor", args.sensor))
      .order("desc")
      .first();
    return reading ? { celsius: reading.celsius } : null;
  },
});
