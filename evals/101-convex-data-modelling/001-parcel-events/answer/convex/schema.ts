import { defineSchema, defineTable } from "convex/server";
import { v } from "convex/values";

export const detail = v.union(
  v.object({ kind: v.literal("scanned"), depot: v.string() }),
  v.object({ kind: v.literal("delivered"), signedBy: v.union(v.string(), v.null()) }),
  v.object({
    kind: v.literal("failed"),
    reason: v.union(v.literal("absent"), v.literal("refused"), v.literal("damaged")),
    retryAt: v.optional(v.number()),
  }),
);

export default defineSchema({
  parcelEvents: defineTable({
    parcel: v.string(),
    at: v.number(),
    detail,
  }).index("by_parcel_and_at", ["parcel", "at"]),
});
