import { ConvexError, v } from "convex/values";
import type { Doc } from "./_generated/dataModel";
import { internalMutation, mutation, query, type QueryCtx } from "./_generated/server";
import { role } from "./schema";

export const join = mutation({
  args: { handle: v.string(), email: v.string() },
  returns: v.id("members"),
  handler: async (ctx, args) => {
    if (await findMember(ctx, args.handle)) {
      throw new ConvexError("HANDLE_TAKEN");
    }
    return await ctx.db.insert("members", {
      handle: normalized(args.handle),
      email: args.email,
      role: "guest",
    });
  },
});

export const profile = query({
  args: { handle: v.string() },
  returns: v.union(v.null(), v.object({ handle: v.string(), role })),
  handler: async (ctx, args) => {
    const member = await findMember(ctx, args.handle);
    return member && { handle: member.handle, role: member.role };
  },
});

export const setRole = internalMutation({
  args: { handle: v.string(), role },
  returns: v.null(),
  handler: async (ctx, args) => {
    const member = await findMember(ctx, args.handle);
    if (!member) {
      throw new ConvexError("NO_SUCH_MEMBER");
    }
    await ctx.db.patch(member._id, { role: args.role });
    return null;
  },
});

function normalized(handle: string): string {
  return handle.trim().toLowerCase();
}

async function findMember(ctx: QueryCtx, handle: string): Promise<Doc<"members"> | null> {
  return await ctx.db
    .query("members")
    .withIndex("by_handle", (q) => q.eq("handle", normalized(handle)))
    .unique();
}
