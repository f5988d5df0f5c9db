import { defineSchema, defineTable } from "convex/server";
import { v } from "convex/values";

export default defineSchema({
  entries: defineTable({ owner: v.string(), text: v.string() }).index("by_owner", ["owner"]),
});
