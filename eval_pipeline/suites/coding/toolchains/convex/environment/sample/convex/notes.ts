import { v } from "convex/values";
import { mutation, query } from "./_generated/server";

export const add = mutation({
  args: { owner: v.string(), text: v.string() },
  returns: v.id("notes"),
  handler: async (ctx, args) => {
    return await ctx.db.insert("notes", { owner: args.owner, text: args.text });
  },
});

export const listByOwner = query({
  args: { owner: v.string() },
  returns: v.array(v.string()),
  handler: async (ctx, { owner }) => {
    const notes = await ctx.db
      .query("notes")
      .withIndex("by_owner", (q) => q.eq("owner", owner))
      .collect();
    return notes.map((note) => note.text);
  },
});
