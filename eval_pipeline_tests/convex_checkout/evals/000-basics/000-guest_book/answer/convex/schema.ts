import { defineSchema, defineTable } from "convex/server";
import { v } from "convex/values";

export default defineSchema({
  guests: defineTable({ name: v.string(), seats: v.number() }).index("by_name", ["name"]),
});
