import { defineSchema, defineTable } from "convex/server";
import { v } from "convex/values";

export const role = v.union(v.literal("guest"), v.literal("member"), v.literal("steward"));

export default defineSchema({
  members: defineTable({
    handle: v.string(),
    email: v.string(),
    role,
  }).index("by_handle", ["handle"]),
});
