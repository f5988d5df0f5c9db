import { ConvexError, v } from "convex/values";
import { mutation, query, type QueryCtx } from "./_generated/server";

async function caller(ctx: QueryCtx) {
  const identity = await ctx.auth.getUserIdentity();
  if (!identity) throw new ConvexError("UNAUTHENTICATED");
  return identity.tokenIdentifier;
}

export const write = mutation({
  args: { text: v.string() },
  returns: v.id("entries"),
  handler: async (ctx, { text }) => {
    return await ctx.db.insert("entries", { owner: await caller(ctx), text });
  },
});

export const mine = query({
  args: {},
  returns: v.array(v.object({ _id: v.id("entries"), text: v.string() })),
  handler: async (ctx) => {
    const identity = await ctx.auth.getUserIdentity();
    if (!identity) return [];
    const entries = await ctx.db
      .query("entries")
      .withIndex("by_owner", (q) => q.eq("owner", identity.tokenIdentifier))
      .order("desc")
      .collect();
    return entries.map(({ _id, text }) => ({ _id, text }));
  },
});

export const rewrite = mutation({
  args: { id: v.id("entries"), text: v.string() },
  returns: v.null(),
  handler: async (ctx, { id, text }) => {
    await caller(ctx);
    if (!(await ctx.db.get(id))) throw new ConvexError("NOT_FOUND");
    await ctx.db.patch(id, { text });
    return null;
  },
});

export const remove = mutation({
  args: { id: v.id("entries") },
  returns: v.null(),
  handler: async (ctx, { id }) => {
    await caller(ctx);
    if (!(await ctx.db.get(id))) throw new ConvexError("NOT_FOUND");
    await ctx.db.delete(id);
    return null;
  },
});
