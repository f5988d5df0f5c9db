"use node";
import { createHash } from "node:crypto";
import { v } from "convex/values";
import { internal } from "./_generated/api";
import { action } from "./_generated/server";

export const similar = action({
  args: { shelf: v.string(), embedding: v.array(v.float64()) },
  handler: async (ctx, { shelf, embedding }): Promise<string[]> => {
    const hits = await ctx.vectorSearch("books", "by_embedding", {
      vector: embedding,
      limit: 2,
      filter: (q) => q.eq("shelf", shelf),
    });
    return await ctx.runQuery(internal.books.titles, { ids: hits.map(({ _id }) => _id) });
  },
});

export const mark = action({
  args: { title: v.string() },
  handler: async (_ctx, { title }) => createHash("sha256").update(title).digest("hex").slice(0, 8),
});
