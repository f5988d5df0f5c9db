import { v } from "convex/values";
import { mutation, query } from "./_generated/server";
import { detail } from "./schema";

export const add = mutation({
  args: { parcel: v.string(), at: v.number(), detail },
  returns: v.id("parcelEvents"),
  handler: async (ctx, args) => await ctx.db.insert("parcelEvents", args),
});

export const history = query({
  args: { parcel: v.string() },
  returns: v.array(v.object({ at: v.number(), detail })),
  handler: async (ctx, { parcel }) => {
    const events = await ctx.db
      .query("parcelEvents")
      .withIndex("by_parcel_and_at", (q) => q.eq("parcel", parcel))
      .collect();
    return events.map(({ at, detail }) => ({ at, detail }));
  },
});

export const state = query({
  args: { parcel: v.string() },
  returns: v.union(
    v.literal("unknown"),
    v.literal("moving"),
    v.literal("delivered"),
    v.literal("failed"),
  ),
  handler: async (ctx, { parcel }) => {
    const events = await ctx.db
      .query("parcelEvents")
      .withIndex("by_parcel_and_at", (q) => q.eq("parcel", parcel))
      .collect();
    const last = events.sort((a, b) => a._creationTime - b._creationTime).at(-1);
    if (!last) return "unknown";
    if (last.detail.kind === "delivered") return "delivered";
    if (last.detail.kind === "failed" && !last.detail.retryAt) return "failed";
    return "moving";
  },
});
