import { defineSchema, defineTable } from "convex/server";
import { v } from "convex/values";

export default defineSchema({
  measurements: defineTable({
    station: v.string(),
    takenAt: v.number(),
    value: v.number(),
  }).index("by_station_and_takenAt", ["station", "takenAt"]),
});
