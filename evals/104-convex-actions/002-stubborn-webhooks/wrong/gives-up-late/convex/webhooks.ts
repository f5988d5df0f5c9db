import { v } from "convex/values";
import { internal } from "./_generated/api";
import type { Doc } from "./_generated/dataModel";
import {
  internalAction,
  internalMutation,
  internalQuery,
  mutation,
  query,
} from "./_generated/server";

const status_ = v.union(v.literal("pending"), v.literal("sent"), v.literal("failed"));

export const enqueue = mutation({
  args: { url: v.string(), payload: v.string() },
  returns: v.id("deliveries"),
  handler: async (ctx, args) => {
    const id = await ctx.db.insert("deliveries", { ...args, status: "pending", attempts: 0 });
    await ctx.scheduler.runAfter(0, internal.webhooks.attempt, { id });
    return id;
  },
});

export const status = query({
  args: { id: v.id("deliveries") },
  returns: v.union(v.null(), v.object({ status: status_, attempts: v.number() })),
  handler: async (ctx, { id }) => {
    const delivery = await ctx.db.get(id);
    return delivery ? { status: delivery.status, attempts: delivery.attempts } : null;
  },
});

export const load = internalQuery({
  args: { id: v.id("deliveries") },
  handler: async (ctx, { id }) => await ctx.db.get(id),
});

export const save = internalMutation({
  args: { id: v.id("deliveries"), status: status_, attempts: v.number() },
  returns: v.null(),
  handler: async (ctx, { id, status, attempts }) => {
    await ctx.db.patch(id, { status, attempts });
    return null;
  },
});

export const attempt = internalAction({
  args: { id: v.id("deliveries") },
  returns: v.null(),
  handler: async (ctx, { id }) => {
    const delivery: Doc<"deliveries"> | null = await ctx.runQuery(internal.webhooks.load, { id });
    if (delivery?.status !== "pending") return null;
    let ok = false;
    try {
      ok = (await fetch(delivery.url, { method: "POST", body: delivery.payload })).ok;
    } catch {
      ok = false;
    }
    const attempts = delivery.attempts + 1;
    if (ok) {
      await ctx.runMutation(internal.webhooks.save, { id, status: "sent", attempts });
    } else if (delivery.attempts >= 4) {
      await ctx.runMutation(internal.webhooks.save, { id, status: "failed", attempts });
    } else {
      await ctx.runMutation(internal.webhooks.save, { id, status: "pending", attempts });
      const delay = 1000 * 2 ** delivery.attempts;
      await ctx.scheduler.runAfter(delay, internal.webhooks.attempt, { id });
    }
    return null;
  },
});
