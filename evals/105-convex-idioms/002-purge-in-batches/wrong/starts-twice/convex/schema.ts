import { defineSchema, defineTable } from "convex/server";
import { v } from "convex/values";

export default defineSchema({
  events: defineTable({ tenant: v.string(), body: v.string() }).index("by_tenant", ["tenant"]),
  purges: defineTable({ tenant: v.string(), removed: v.number(), done: v.boolean() }).index(
    "by_tenant",
    ["tenant"],
  ),
});
