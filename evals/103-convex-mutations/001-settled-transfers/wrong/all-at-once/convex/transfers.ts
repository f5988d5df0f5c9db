import { ConvexError, v } from "convex/values";
import type { Id } from "./_generated/dataModel";
import { mutation, type MutationCtx } from "./_generated/server";

const fields = { from: v.id("accounts"), to: v.id("accounts"), cents: v.number() };

async function move(
  ctx: MutationCtx,
  { from, to, cents }: { from: Id<"accounts">; to: Id<"accounts">; cents: number },
): Promise<{ id: Id<"transfers"> } | { code: string }> {
  if (!Number.isInteger(cents) || cents <= 0) return { code: "INVALID_AMOUNT" };
  if (from === to) return { code: "SAME_ACCOUNT" };
  const payer = await ctx.db.get(from);
  const payee = await ctx.db.get(to);
  if (!payer || !payee) return { code: "NOT_FOUND" };
  if (payer.cents < cents) return { code: "INSUFFICIENT_FUNDS" };
  await ctx.db.patch(from, { cents: payer.cents - cents });
  await ctx.db.patch(to, { cents: payee.cents + cents });
  return { id: await ctx.db.insert("transfers", { from, to, cents }) };
}

export const transfer = mutation({
  args: fields,
  returns: v.id("transfers"),
  handler: async (ctx, args) => {
    const result = await move(ctx, args);
    if ("code" in result) throw new ConvexError({ code: result.code });
    return result.id;
  },
});

export const settle = mutation({
  args: { transfers: v.array(v.object(fields)) },
  returns: v.array(v.union(v.null(), v.string())),
  handler: async (ctx, { transfers }) => {
    const results = await Promise.all(transfers.map((one) => move(ctx, one)));
    return results.map((result) => ("code" in result ? result.code : null));
  },
});
