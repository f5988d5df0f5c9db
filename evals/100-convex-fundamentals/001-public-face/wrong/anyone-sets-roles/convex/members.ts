import { ConvexError, v } from "convex/values";
import { mutation, query } from "./_generated/server";

const role = v.union(v.literal("guest"), v.literal("member"), v.literal("steward"));
const clean = (handle: string) => handle.trim().toLowerCase();

export const join = mutation({
  args: { handle: v.string(), email: v.string() },
  returns: v.id("members"),
  handler: async (ctx, { handle, email }) => {
    const existing = await ctx.db
      .query("members")
      .withIndex("by_handle", (q) => q.eq("handle", clean(handle)))
      .first();
    if (existing) throw new ConvexError("HANDLE_TAKEN");
    return await ctx.db.insert("members", { handle: clean(handle), email, role: "guest" });
  },
});

export const profile = query({
  args: { handle: v.string() },
  returns: v.union(v.null(), v.object({ handle: v.string(), role })),
  handler: async (ctx, args) => {
    const member = await ctx.db
      .query("members")
      .withIndex("by_handle", (q) => q.eq("handle", clean(args.handle)))
      .first();
    return member ? { handle: member.handle, role: member.role } : null;
  },
});

export const setRole = mutation({
  args: { handle: v.string(), role },
  returns: v.null(),
  handler: async (ctx, args) => {
    const member = await ctx.db
      .query("members")
      .withIndex("by_handle", (q) => q.eq("handle", clean(args.handle)))
      .first();
    if (!member) throw new ConvexError("NO_SUCH_MEMBER");
    await ctx.db.patch(member._id, { role: args.role });
    return null;
  },
});
