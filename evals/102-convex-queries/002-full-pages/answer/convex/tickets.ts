import { paginationOptsValidator } from "convex/server";
import { ConvexError, v } from "convex/values";
import { mutation, query } from "./_generated/server";

export const close = mutation({
  args: { id: v.id("tickets") },
  returns: v.null(),
  handler: async (ctx, args) => {
    if (!(await ctx.db.get(args.id))) {
      throw new ConvexError("NOT_FOUND");
    }
    await ctx.db.patch(args.id, { open: false });
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
  handler: async (ctx, args) => {
    const { page, isDone, continueCursor } = await ctx.db
      .query("tickets")
      .withIndex("by_project_and_open_and_priority", (q) =>
        q.eq("project", args.project).eq("open", true),
      )
      .order("desc")
      .paginate(args.paginationOpts);
    return {
      page: page.map(({ _id, title, priority }) => ({ _id, title, priority })),
      isDone,
      continueCursor,
    };
  },
});
