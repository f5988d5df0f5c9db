import { defineApp } from "convex/server";
import { v } from "convex/values";

export default defineApp({
  env: { LIBRARY: v.optional(v.string()), SIZE: v.union(v.literal("small"), v.literal("large")) },
});
