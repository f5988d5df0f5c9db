import { ConvexError, v } from "convex/values";
import type { Id } from "./_generated/dataModel";
import { mutation, query, type MutationCtx, type QueryCtx } from "./_generated/server";

export const write = mutation({
  args: { text: v.string() },
  returns: v.id("entries"),
  handler: async (ctx, { text }) => {
    return await ctx.db.insert("entries", { owner: await requireCaller(ctx), text });
  },
});

export const mine = query({
  args: {},
  returns: v.array(v.object({ _id: v.id("entries"), text: v.string() })),
  handler: async (ctx) => {
    const owner = await callerOf(ctx);
    if (owner === null) {
      return [];
    }
    const entries = await ctx.db
      .query("entries")
      .withIndex("by_owner", (q) => q.eq("owner", owner))
      .order("desc")
      .collect();
    return entries.map(({ _id, text }) => ({ _id, text }));
  },
});

export const rewrite = mutation({
  args: { id: v.id("entries"), text: v.string() },
  returns: v.null(),
  handler: async (ctx, { id, text }) => {
    await requireOwnEntry(ctx, id);
    await ctx.db.patch(id, { text });
    return null;
  },
});

export const remove = mutation({
  args: { id: v.id("entries") },
  returns: v.null(),
  handler: async (ctx, { id }) => {
    await requireOwnEntry(ctx, id);
    await ctx.db.delete(id);
    return null;
  },
});

async function callerOf(ctx: QueryCtx): Promise<string | null> {
  const identity = await ctx.auth.getUserIdentity();
  return identity?.tokenIdentifier ?? null;
}

async function requireCaller(ctx: MutationCtx): Promise<string> {
  const caller = await callerOf(ctx);
  if (caller === null) {
    throw new ConvexError("UNAUTHENTICATED");
  }
  return caller;
}

async function requireOwnEntry(ctx: MutationCtx, id: Id<"entries">): Promise<void> {
  const caller = await requireCaller(ctx);
  const entry = await ctx.db.get(id);
  if (entry?.owner !== caller) {
    throw new ConvexError("NOT_FOUND");
  }
}
