import { paginationOptsValidator } from "convex/server";
import { ConvexError, v } from "convex/values";
import { mutation, query } from "./_generated/server";

export const close = mutation({
  args: { id: v.id("tickets") },
  returns: v.null(),
  handler: async (ctx, { id }) => {
    const ticket = await ctx.db.get(id);
    if (!ticket) throw new ConvexError("NOT_FOUND");
    await ctx.db.patch(id, { open: false });
    return null;
  },
});

export const listOpen = query({
  args: { project: v.string(), paginationOpts: paginationOptsValidator },
  returns: v.object({
    page: v.array(v.object({ _id: v.id("tickets"), title: v.string(), priority: v.number() })),
    isDone: v.boolean(),
    continueCursor: v.string(),
  }),
  handler: async (ctx, { project, paginationOpts }) => {
    const result = await ctx.db
      .query("tickets")
      .withIndex("by_project_and_priority", (q) => q.eq("project", project))
      .order("desc")
      .paginate(paginationOpts);
    const page = result.page
      .filter((ticket) => ticket.open)
      .map(({ _id, title, priority }) => ({ _id, title, priority }));
    return { page, isDone: result.isDone, continueCursor: result.continueCursor };
  },
});
