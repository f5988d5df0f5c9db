import { defineSchema, defineTable } from "convex/server";
import { v } from "convex/values";

export default defineSchema({
  tickets: defineTable({
    project: v.string(),
    title: v.string(),
    open: v.boolean(),
    priority: v.number(),
  }).index("by_project_and_priority", ["project", "priority"]),
});
