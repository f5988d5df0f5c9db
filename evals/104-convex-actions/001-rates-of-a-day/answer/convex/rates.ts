import { ConvexError, v, type Infer } from "convex/values";
import { internal } from "./_generated/api";
import type { Doc } from "./_generated/dataModel";
import { action, internalMutation, query, type QueryCtx } from "./_generated/server";

const rate = v.object({ currency: v.string(), perEuro: v.number() });

export const importDay = action({
  args: { day: v.string() },
  returns: v.object({ stored: v.number() }),
  handler: async (ctx, { day }): Promise<{ stored: number }> => {
    const response = await fetch(`https://rates.example/v1/${day}`);
    if (!response.ok) {
      throw new ConvexError({ code: "UPSTREAM", status: response.status });
    }
    const rates = ratesIn(await response.json().catch(() => null));
    return { stored: await ctx.runMutation(internal.rates.replaceDay, { day, rates }) };
  },
});

export const replaceDay = internalMutation({
  args: { day: v.string(), rates: v.array(rate) },
  returns: v.number(),
  handler: async (ctx, { day, rates }) => {
    const before = await ratesOf(ctx, day);
    await Promise.all(before.map(({ _id }) => ctx.db.delete(_id)));
    await Promise.all(rates.map((one) => ctx.db.insert("rates", { day, ...one })));
    return rates.length;
  },
});

export const onDay = query({
  args: { day: v.string() },
  returns: v.array(rate),
  handler: async (ctx, { day }) => {
    const rates = await ratesOf(ctx, day);
    return rates.map(({ currency, perEuro }) => ({ currency, perEuro }));
  },
});

async function ratesOf(ctx: QueryCtx, day: string): Promise<Doc<"rates">[]> {
  return await ctx.db
    .query("rates")
    .withIndex("by_day_and_currency", (q) => q.eq("day", day))
    .collect();
}

function ratesIn(body: unknown): Infer<typeof rate>[] {
  const rates = isObject(body) ? body.rates : undefined;
  if (!isObject(rates)) {
    throw new ConvexError({ code: "BAD_DATA" });
  }
  return Object.entries(rates).map(([currency, perEuro]) => {
    if (typeof perEuro !== "number" || !(perEuro > 0)) {
      throw new ConvexError({ code: "BAD_DATA" });
    }
    return { currency, perEuro };
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
