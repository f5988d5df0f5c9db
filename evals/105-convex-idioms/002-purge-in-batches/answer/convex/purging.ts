import { v } from "convex/values";
import { internal } from "./_generated/api";
import type { Doc } from "./_generated/dataModel";
import { internalMutation, mutation, query, type QueryCtx } from "./_generated/server";

const BATCH = 25;

export const start = mutation({
  args: { tenant: v.string() },
  returns: v.null(),
  handler: async (ctx, { tenant }) => {
    const purge = await purgeOf(ctx, tenant);
    if (purge && !purge.done) {
      return null;
    }
    if (purge) {
      await ctx.db.patch(purge._id, { removed: 0, done: false });
    } else {
      await ctx.db.insert("purges", { tenant, removed: 0, done: false });
    }
    await ctx.scheduler.runAfter(0, internal.purging.step, { tenant });
    return null;
  },
});

export const step = internalMutation({
  args: { tenant: v.string() },
  returns: v.number(),
  handler: async (ctx, { tenant }) => {
    const purge = await purgeOf(ctx, tenant);
    if (!purge || purge.done) {
      return 0;
    }
    const events = await ctx.db
      .query("events")
      .withIndex("by_tenant", (q) => q.eq("tenant", tenant))
      .take(BATCH);
    await Promise.all(events.map(({ _id }) => ctx.db.delete(_id)));
    const done = events.length < BATCH;
    await ctx.db.patch(purge._id, { removed: purge.removed + events.length, done });
    if (!done) {
      await ctx.scheduler.runAfter(0, internal.purging.step, { tenant });
    }
    return events.length;
  },
});

export const progress = query({
  args: { tenant: v.string() },
  returns: v.union(v.null(), v.object({ removed: v.number(), done: v.boolean() })),
  handler: async (ctx, { tenant }) => {
    const purge = await purgeOf(ctx, tenant);
    return purge && { removed: purge.removed, done: purge.done };
  },
});

async function purgeOf(ctx: QueryCtx, tenant: string): Promise<Doc<"purges"> | null> {
  return await ctx.db
    .query("purges")
    .withIndex("by_tenant", (q) => q.eq("tenant", tenant))
    .unique();
}
