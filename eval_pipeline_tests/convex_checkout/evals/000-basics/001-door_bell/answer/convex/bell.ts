import { v } from "convex/values";
import { internal } from "./_generated/api";
import { internalMutation, mutation, query } from "./_generated/server";

export const ring = internalMutation({
  args: { door: v.string() },
  handler: async (ctx, { door }) => {
    const id = await ctx.db.insert("rings", { door });
    await ctx.scheduler.runAfter(0, internal.bell.hear, { id });
  },
});

export const hear = internalMutation({
  args: { id: v.id("rings") },
  handler: async (ctx, { id }) => await ctx.db.patch(id, { heard: true }),
});

export const mine = query({
  args: {},
  handler: async (ctx) => (await ctx.auth.getUserIdentity())?.subject ?? null,
});

export const upload = mutation({
  args: {},
  handler: async (ctx) => await ctx.storage.generateUploadUrl(),
});

export const photograph = query({
  args: { id: v.id("_storage") },
  handler: async (ctx, { id }) => await ctx.storage.getUrl(id),
});
