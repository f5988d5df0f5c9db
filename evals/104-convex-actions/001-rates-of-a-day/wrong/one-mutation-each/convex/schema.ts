import { defineSchema, defineTable } from "convex/server";
import { v } from "convex/values";

export default defineSchema({
  rates: defineTable({
    day: v.string(),
    currency: v.string(),
    perEuro: v.number(),
  }).index("by_day_and_currency", ["day", "currency"]),
});
