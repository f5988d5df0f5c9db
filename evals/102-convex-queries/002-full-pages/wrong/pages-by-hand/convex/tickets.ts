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
    const tickets = await ctx.db
      .query("tickets")
      .withIndex("by_project_and_open", (q) => q.eq("project", project).eq("open", true))
      .order("desc")
      .collect();
    tickets.sort((a, b) => b.priority - a.priority);
    const start = Number(paginationOpts.cursor ?? 0);
    const end = start + paginationOpts.numItems;
    return {
      page: tickets
        .slice(start, end)
        .map(({ _id, title, priority }) => ({ _id, title, priority })),
      isDone: end >= tickets.length,
      continueCursor: String(end),
    };
  },
});
