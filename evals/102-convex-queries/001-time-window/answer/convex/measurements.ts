import { v, type Infer } from "convex/values";
import type { Doc } from "./_generated/dataModel";
import { query } from "./_generated/server";

const measurement = v.object({ takenAt: v.number(), value: v.number() });

export const window = query({
  args: { station: v.string(), from: v.number(), to: v.number(), limit: v.number() },
  returns: v.array(measurement),
  handler: async (ctx, args) => {
    const newest = await ctx.db
      .query("measurements")
      .withIndex("by_station_and_takenAt", (q) =>
        q.eq("station", args.station).gte("takenAt", args.from).lt("takenAt", args.to),
      )
      .order("desc")
      .take(args.limit);
    return newest.map(shown);
  },
});

export const before = query({
  args: { station: v.string(), at: v.number(), least: v.number() },
  returns: v.union(v.null(), measurement),
  handler: async (ctx, args) => {
    const newestFirst = ctx.db
      .query("measurements")
      .withIndex("by_station_and_takenAt", (q) =>
        q.eq("station", args.station).lt("takenAt", args.at),
      )
      .order("desc");
    for await (const document of newestFirst) {
      if (document.value >= args.least) {
        return shown(document);
      }
    }
    return null;
  },
});

function shown({ takenAt, value }: Doc<"measurements">): Infer<typeof measurement> {
  return { takenAt, value };
}
