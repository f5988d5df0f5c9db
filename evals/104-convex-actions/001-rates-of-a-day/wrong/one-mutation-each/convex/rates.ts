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
    const body = await response.json().catch(() => null);
    const rates = body?.rates;
    if (typeof rates !== "object" || rates === null || Array.isArray(rates)) {
      throw new ConvexError({ code: "BAD_DATA" });
    }
    for (const perEuro of Object.values(rates)) {
      if (typeof perEuro !== "number" || perEuro <= 0) {
        throw new ConvexError({ code: "BAD_DATA" });
      }
    }
    await ctx.runMutation(internal.rates.replaceDay, { day, rates: [] });
    let stored = 0;
    for (const [currency, perEuro] of Object.entries(rates as Record<string, number>)) {
      await ctx.runMutation(internal.rates.store, { day, currency, perEuro });
      stored += 1;
    }
    return { stored };
  },
});

export const store = internalMutation({
  args: { day: v.string(), currency: v.string(), perEuro: v.number() },
  returns: v.null(),
  handler: async (ctx, args) => {
    await ctx.db.insert("rates", args);
    return null;
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
