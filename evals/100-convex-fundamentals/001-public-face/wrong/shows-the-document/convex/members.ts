import { ConvexError, v } from "convex/values";
import { internalMutation, mutation, query } from "./_generated/server";

const role = v.union(v.literal("guest"), v.literal("member"), v.literal("steward"));
const clean = (handle: string) => handle.trim().toLowerCase();

export const join = mutation({
  args: { handle: v.string(), email: v.string() },
  returns: v.id("members"),
  handler: async (ctx, { handle, email }) => {
    const existing = await ctx.db
      .query("members")
      .withIndex("by_handle", (q) => q.eq("handle", clean(handle)))
      .unique();
    if (existing) throw new ConvexError("HANDLE_TAKEN");
    return await ctx.db.insert("members", { handle: clean(handle), email, role: "guest" });
  },
});

export const profile = query({
  args: { handle: v.string() },
  returns: v.union(
    v.null(),
    v.object({
      _id: v.id("members"),
      _creationTime: v.number(),
      handle: v.string(),
      email: v.string(),
      role,
    }),
  ),
  handler: async (ctx, args) => {
    return await ctx.db
      .query("members")
      .withIndex("by_handle", (q) => q.eq("handle", clean(args.handle)))
      .unique();
  },
});

export const setRole = internalMutation({
  args: { handle: v.string(), role },
  returns: v.null(),
  handler: async (ctx, args) => {
    const member = await ctx.db
      .query("members")
      .withIndex("by_handle", (q) => q.eq("handle", clean(args.handle)))
      .unique();
    if (!member) throw new ConvexError("NO_SUCH_MEMBER");
    await ctx.db.patch(member._id, { role: args.role });
    return null;
  },
});
