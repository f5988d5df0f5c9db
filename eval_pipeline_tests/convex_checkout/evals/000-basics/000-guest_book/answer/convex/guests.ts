import { v } from "convex/values";
import { internalQuery, mutation, query } from "./_generated/server";

export const sign = mutation({
  args: { name: v.string(), seats: v.number() },
  handler: async (ctx, args) => {
    if (args.seats < 1) throw new Error("No seat");
    return await ctx.db.insert("guests", args);
  },
});

export const list = query({
  args: {},
  handler: async (ctx) => (await ctx.db.query("guests").take(100)).map((guest) => guest.name),
});

export const total = internalQuery({
  args: {},
  handler: async (ctx) => {
    const guests = await ctx.db.query("guests").take(100);
    return guests.reduce((sum, guest) => sum + guest.seats, 0);
  },
});
