import { ConvexError, v } from "convex/values";
import type { Id } from "./_generated/dataModel";
import { mutation, type MutationCtx } from "./_generated/server";

const fields = { from: v.id("accounts"), to: v.id("accounts"), cents: v.number() };

async function change(ctx: MutationCtx, id: Id<"accounts">, cents: number) {
  const account = await ctx.db.get(id);
  if (!account) throw new ConvexError({ code: "NOT_FOUND" });
  if (account.cents + cents < 0) throw new ConvexError({ code: "INSUFFICIENT_FUNDS" });
  await ctx.db.patch(id, { cents: account.cents + cents });
}

async function move(
  ctx: MutationCtx,
  { from, to, cents }: { from: Id<"accounts">; to: Id<"accounts">; cents: number },
) {
  if (!Number.isInteger(cents) || cents <= 0) throw new ConvexError({ code: "INVALID_AMOUNT" });
  if (from === to) throw new ConvexError({ code: "SAME_ACCOUNT" });
  if (!(await ctx.db.get(from))) throw new ConvexError({ code: "NOT_FOUND" });
  await change(ctx, from, -cents);
  await change(ctx, to, cents);
  return await ctx.db.insert("transfers", { from, to, cents });
}

export const transfer = mutation({
  args: fields,
  returns: v.id("transfers"),
  handler: async (ctx, args) => await move(ctx, args),
});

export const settle = mutation({
  args: { transfers: v.array(v.object(fields)) },
  returns: v.array(v.union(v.null(), v.string())),
  handler: async (ctx, { transfers }) => {
    const results: (string | null)[] = [];
    for (const one of transfers) {
      try {
        await move(ctx, one);
        results.push(null);
      } catch (error) {
        if (!(error instanceof ConvexError)) throw error;
        results.push((error.data as { code: string }).code);
      }
    }
    return results;
  },
});
