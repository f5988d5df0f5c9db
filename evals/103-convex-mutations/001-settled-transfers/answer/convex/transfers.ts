import { ConvexError, v } from "convex/values";
import type { Id } from "./_generated/dataModel";
import { mutation, type MutationCtx } from "./_generated/server";

type Transfer = { from: Id<"accounts">; to: Id<"accounts">; cents: number };
type Reason = "INVALID_AMOUNT" | "SAME_ACCOUNT" | "NOT_FOUND" | "INSUFFICIENT_FUNDS";
type Outcome = { id: Id<"transfers"> } | { reason: Reason };

const fields = { from: v.id("accounts"), to: v.id("accounts"), cents: v.number() };

export const transfer = mutation({
  args: fields,
  returns: v.id("transfers"),
  handler: async (ctx, args) => {
    const outcome = await move(ctx, args);
    if ("reason" in outcome) {
      throw new ConvexError({ code: outcome.reason });
    }
    return outcome.id;
  },
});

export const settle = mutation({
  args: { transfers: v.array(v.object(fields)) },
  returns: v.array(v.union(v.null(), v.string())),
  handler: async (ctx, args) => {
    const reasons: (Reason | null)[] = [];
    for (const one of args.transfers) {
      const outcome = await move(ctx, one);
      reasons.push("reason" in outcome ? outcome.reason : null);
    }
    return reasons;
  },
});

/** Writes only once nothing can go wrong any more: whoever calls may go on after a refusal. */
async function move(ctx: MutationCtx, { from, to, cents }: Transfer): Promise<Outcome> {
  if (!Number.isInteger(cents) || cents <= 0) {
    return { reason: "INVALID_AMOUNT" };
  }
  if (from === to) {
    return { reason: "SAME_ACCOUNT" };
  }
  const [payer, payee] = await Promise.all([ctx.db.get(from), ctx.db.get(to)]);
  if (!payer || !payee) {
    return { reason: "NOT_FOUND" };
  }
  if (payer.cents < cents) {
    return { reason: "INSUFFICIENT_FUNDS" };
  }
  await ctx.db.patch(from, { cents: payer.cents - cents });
  await ctx.db.patch(to, { cents: payee.cents + cents });
  return { id: await ctx.db.insert("transfers", { from, to, cents }) };
}
