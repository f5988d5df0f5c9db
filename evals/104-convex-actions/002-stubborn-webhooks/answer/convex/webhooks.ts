import { v } from "convex/values";
import { internal } from "./_generated/api";
import {
  internalAction,
  internalMutation,
  internalQuery,
  mutation,
  query,
} from "./_generated/server";
import { status as statusValidator } from "./schema";

const MOST_ATTEMPTS = 4;
const FIRST_DELAY_MS = 1000;

export const enqueue = mutation({
  args: { url: v.string(), payload: v.string() },
  returns: v.id("deliveries"),
  handler: async (ctx, { url, payload }) => {
    const id = await ctx.db.insert("deliveries", { url, payload, status: "pending", attempts: 0 });
    await ctx.scheduler.runAfter(0, internal.webhooks.attempt, { id });
    return id;
  },
});

export const status = query({
  args: { id: v.id("deliveries") },
  returns: v.union(v.null(), v.object({ status: statusValidator, attempts: v.number() })),
  handler: async (ctx, { id }) => {
    const delivery = await ctx.db.get(id);
    return delivery && { status: delivery.status, attempts: delivery.attempts };
  },
});

export const attempt = internalAction({
  args: { id: v.id("deliveries") },
  returns: v.null(),
  handler: async (ctx, { id }) => {
    const request = await ctx.runQuery(internal.webhooks.pending, { id });
    if (request) {
      const succeeded = await send(request.url, request.payload);
      await ctx.runMutation(internal.webhooks.attempted, { id, succeeded });
    }
    return null;
  },
});

export const pending = internalQuery({
  args: { id: v.id("deliveries") },
  returns: v.union(v.null(), v.object({ url: v.string(), payload: v.string() })),
  handler: async (ctx, { id }) => {
    const delivery = await ctx.db.get(id);
    if (delivery?.status !== "pending") {
      return null;
    }
    return { url: delivery.url, payload: delivery.payload };
  },
});

export const attempted = internalMutation({
  args: { id: v.id("deliveries"), succeeded: v.boolean() },
  returns: v.null(),
  handler: async (ctx, { id, succeeded }) => {
    const delivery = await ctx.db.get(id);
    if (!delivery) {
      return null;
    }
    const attempts = delivery.attempts + 1;
    if (succeeded) {
      await ctx.db.patch(id, { attempts, status: "sent" });
    } else if (attempts >= MOST_ATTEMPTS) {
      await ctx.db.patch(id, { attempts, status: "failed" });
    } else {
      await ctx.db.patch(id, { attempts });
      const delay = FIRST_DELAY_MS * 2 ** (attempts - 1);
      await ctx.scheduler.runAfter(delay, internal.webhooks.attempt, { id });
    }
    return null;
  },
});

async function send(url: string, payload: string): Promise<boolean> {
  try {
    const response = await fetch(url, { method: "POST", body: payload });
    return response.ok;
  } catch {
    return false;
  }
}
