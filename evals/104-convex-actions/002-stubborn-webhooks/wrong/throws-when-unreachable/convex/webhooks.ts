import { v } from "convex/values";
import { internal } from "./_generated/api";
import {
  internalAction,
  internalMutation,
  internalQuery,
  mutation,
  query,
} from "./_generated/server";

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
  returns: v.union(
    v.null(),
    v.object({
      status: v.union(v.literal("pending"), v.literal("sent"), v.literal("failed")),
      attempts: v.number(),
    }),
  ),
  handler: async (ctx, { id }) => {
    const delivery = await ctx.db.get(id);
    return delivery ? { status: delivery.status, attempts: delivery.attempts } : null;
  },
});

export const load = internalQuery({
  args: { id: v.id("deliveries") },
  returns: v.union(v.null(), v.object({ url: v.string(), payload: v.string() })),
  handler: async (ctx, { id }) => {
    const delivery = await ctx.db.get(id);
    if (!delivery || delivery.status !== "pending") return null;
    return { url: delivery.url, payload: delivery.payload };
  },
});

export const finish = internalMutation({
  args: { id: v.id("deliveries"), ok: v.boolean() },
  returns: v.null(),
  handler: async (ctx, { id, ok }) => {
    const delivery = await ctx.db.get(id);
    if (!delivery) return null;
    const attempts = delivery.attempts + 1;
    const status = ok ? "sent" : attempts >= 4 ? "failed" : "pending";
    await ctx.db.patch(id, { attempts, status });
    if (status === "pending") {
      await ctx.scheduler.runAfter(500 * 2 ** attempts, internal.webhooks.attempt, { id });
    }
    return null;
  },
});

export const attempt = internalAction({
  args: { id: v.id("deliveries") },
  returns: v.null(),
  handler: async (ctx, { id }) => {
    const delivery = await ctx.runQuery(internal.webhooks.load, { id });
    if (!delivery) return null;
    const response = await fetch(delivery.url, { method: "POST", body: delivery.payload });
    await ctx.runMutation(internal.webhooks.finish, { id, ok: response.ok });
    return null;
  },
});
