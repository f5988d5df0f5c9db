import { v, type Infer } from "convex/values";
import { mutation, query } from "./_generated/server";
import { detail } from "./schema";

const state_ = v.union(
  v.literal("unknown"),
  v.literal("moving"),
  v.literal("delivered"),
  v.literal("failed"),
);

export const add = mutation({
  args: { parcel: v.string(), at: v.number(), detail },
  returns: v.id("parcelEvents"),
  handler: async (ctx, args) => {
    return await ctx.db.insert("parcelEvents", args);
  },
});

export const history = query({
  args: { parcel: v.string() },
  returns: v.array(v.object({ at: v.number(), detail })),
  handler: async (ctx, args) => {
    const events = await ctx.db
      .query("parcelEvents")
      .withIndex("by_parcel_and_at", (q) => q.eq("parcel", args.parcel))
      .collect();
    return events.map((event) => ({ at: event.at, detail: event.detail }));
  },
});

export const state = query({
  args: { parcel: v.string() },
  returns: state_,
  handler: async (ctx, args) => {
    const last = await ctx.db
      .query("parcelEvents")
      .withIndex("by_parcel_and_at", (q) => q.eq("parcel", args.parcel))
      .order("desc")
      .first();
    return last ? stateAfter(last.detail) : "unknown";
  },
});

function stateAfter(event: Infer<typeof detail>): Infer<typeof state_> {
  switch (event.kind) {
    case "scanned":
      return "moving";
    case "delivered":
      return "delivered";
    case "failed":
      return event.retryAt === undefined ? "failed" : "moving";
  }
}
