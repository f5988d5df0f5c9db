import { defineSchema, defineTable } from "convex/server";
import { v } from "convex/values";

export default defineSchema({
  rings: defineTable({ door: v.string(), heard: v.optional(v.boolean()) }),
});
