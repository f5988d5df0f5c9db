import { defineSchema, defineTable } from "convex/server";
import { v } from "convex/values";

export default defineSchema({
  books: defineTable({
    title: v.string(),
    shelf: v.string(),
    summary: v.string(),
    embedding: v.array(v.float64()),
  })
    .searchIndex("by_summary", { searchField: "summary", filterFields: ["shelf"] })
    .vectorIndex("by_embedding", { vectorField: "embedding", dimensions: 3, filterFields: ["shelf"] }),
});
