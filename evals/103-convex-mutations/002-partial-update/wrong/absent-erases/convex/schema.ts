import { defineSchema, defineTable } from "convex/server";
import { v } from "convex/values";

export default defineSchema({
  contacts: defineTable({
    name: v.string(),
    tags: v.array(v.string()),
    phone: v.optional(v.string()),
    email: v.optional(v.string()),
  }),
});
