import { ConvexError, v } from "convex/values";
import { internal } from "./_generated/api";
import { action, internalMutation, query } from "./_generated/server";

const rate = v.object({ currency: v.string(), perEuro: v.number() });

export const importDay = action({
  args: { day: v.string() },
  returns: v.object({ stored: v.number() }),
  handler: async (ctx, { day }): Promise<{ stored: number }> => {
    const response = await fetch(`https://rates.example/v1/${day}`);
    if (!response.ok) throw new ConvexError({ code: "UPSTREAM", status: response.status });
    const body = (await response.json()) as { rates?: Record<string, number> };
    if (!body.rates) throw new ConvexError({ code: "BAD_DATA" });
    const rates = Object.entries(body.rates).map(([currency, perEuro]) => ({ currency, perEuro }));
    const stored = await ctx.runMutation(internal.rates.replaceDay, { day, rates });
    return { stored };
  },
});

export const replaceDay = internalMutation({
  args: { day: v.string(), rates: v.array(rate) },
  returns: v.number(),
  handler: async (ctx, { day, rates }) => {
    const old = await ctx.db
      .query("rates")
      .withIndex("by_day_and_currency", (q) => q.eq("day", day))
      .collect();
    for (const { _id } of old) await ctx.db.delete(_id);
    for (const one of rates) await ctx.db.insert("rates", { day, ...one });
    return rates.length;
  },
});

export const onDay = query({
  args: { day: v.string() },
  returns: v.array(rate),
  handler: async (ctx, { day }) => {
    const rates = await ctx.db
      .query("rates")
      .withIndex("by_day_and_currency", (q) => q.eq("day", day))
      .collect();
    return rates.map(({ currency, perEuro }) => ({ currency, perEuro }));
  },
});
