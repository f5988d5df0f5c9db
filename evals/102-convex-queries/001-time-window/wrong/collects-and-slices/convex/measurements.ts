import { v } from "convex/values";
import { query } from "./_generated/server";

const measurement = v.object({ takenAt: v.number(), value: v.number() });

export const window = query({
  args: { station: v.string(), from: v.number(), to: v.number(), limit: v.number() },
  returns: v.array(measurement),
  handler: async (ctx, { station, from, to, limit }) => {
    const all = await ctx.db
      .query("measurements")
      .withIndex("by_station_and_takenAt", (q) =>
        q.eq("station", station).gte("takenAt", from).lt("takenAt", to),
      )
      .order("desc")
      .collect();
    return all.slice(0, limit).map(({ takenAt, value }) => ({ takenAt, value }));
  },
});

export const before = query({
  args: { station: v.string(), at: v.number(), least: v.number() },
  returns: v.union(v.null(), measurement),
  handler: async (ctx, { station, at, least }) => {
    const earlier = await ctx.db
      .query("measurements")
      .withIndex("by_station_and_takenAt", (q) => q.eq("station", station).lt("takenAt", at))
      .order("desc")
      .collect();
    const found = earlier.find(({ value }) => value >= least);
    return found ? { takenAt: found.takenAt, value: found.value } : null;
  },
});
