import { defineSchema, defineTable } from "convex/server";
import { v } from "convex/values";

export const detail = v.object({
  kind: v.union(v.literal("scanned"), v.literal("delivered"), v.literal("failed")),
  depot: v.optional(v.string()),
  signedBy: v.optional(v.union(v.string(), v.null())),
  reason: v.optional(v.union(v.literal("absent"), v.literal("refused"), v.literal("damaged"))),
  retryAt: v.optional(v.number()),
});

export default defineSchema({
  parcelEvents: defineTable({
    parcel: v.string(),
    at: v.number(),
    detail,
  }).index("by_parcel_and_at", ["parcel", "at"]),
});
