import { v } from "convex/values";
import { internalQuery, query } from "./_generated/server";

export const find = query({
  args: { shelf: v.string(), words: v.string() },
  handler: async (ctx, { shelf, words }) => {
    const found = await ctx.db
      .query("books")
      .withSearchIndex("by_summary", (q) => q.search("summary", words).eq("shelf", shelf))
      .take(5);
    return found.map(({ title }) => title);
  },
});

export const titles = internalQuery({
  args: { ids: v.array(v.id("books")) },
  handler: async (ctx, { ids }) => {
    const books = await Promise.all(ids.map((id) => ctx.db.get(id)));
    return books.flatMap((book) => (book ? [book.title] : []));
  },
});
