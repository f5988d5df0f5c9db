import { defineSchema, defineTable } from "convex/server";
import { v } from "convex/values";

export default defineSchema({
  members: defineTable({
    handle: v.string(),
    email: v.string(),
    role: v.union(v.literal("guest"), v.literal("member"), v.literal("steward")),
  }).index("by_handle", ["handle"]),
});
