import { convexTest } from "convex-test";
import { expect, test } from "vitest";
import { api } from "../convex/_generated/api";
import type { Id } from "../convex/_generated/dataModel";
import schema from "../convex/schema";

const modules = import.meta.glob("../convex/**/*.*s");

/** A backend with accounts that hold so many cents; one of null is deleted again. */
async function bank(...balances: (number | null)[]) {
  const t = convexTest(schema, modules);
  const ids = await t.run((ctx) =>
    Promise.all(
      balances.map((cents) => ctx.db.insert("accounts", { owner: "x", cents: cents ?? 0 })),
    ),
  );
  await t.run(async (ctx) => {
    for (const [index, cents] of balances.entries()) {
      if (cents === null) await ctx.db.delete(ids[index]);
    }
  });
  const held = () =>
    t.run((ctx) => Promise.all(ids.map(async (id) => (await ctx.db.get(id))?.cents ?? null)));
  const stored = () => t.run((ctx) => ctx.db.query("transfers").collect());
  return { t, ids, held, stored };
}

const move = (from: Id<"accounts">, to: Id<"accounts">, cents: number) => ({ from, to, cents });

test("a transfer moves money and is stored", async () => {
  const { t, ids, held, stored } = await bank(500, 20);
  const id = await t.mutation(api.transfers.transfer, move(ids[0], ids[1], 120));
  expect(await held()).toEqual([380, 140]);
  expect(await stored()).toMatchObject([{ _id: id, from: ids[0], to: ids[1], cents: 120 }]);
});

test("everything can be moved", async () => {
  const { t, ids, held } = await bank(500, 0);
  await t.mutation(api.transfers.transfer, move(ids[0], ids[1], 500));
  expect(await held()).toEqual([0, 500]);
});

test.each([0, -5, 0.5, Number.NaN, Number.POSITIVE_INFINITY])(
  "%s cents can not be moved",
  async (cents) => {
    const { t, ids, held } = await bank(500, 20);
    await expect(
      t.mutation(api.transfers.transfer, move(ids[0], ids[1], cents)),
    ).rejects.toMatchObject({ data: { code: "INVALID_AMOUNT" } });
    expect(await held()).toEqual([500, 20]);
  },
);

test("the first of several reasons is given", async () => {
  const { t, ids } = await bank(10, null, 20);
  const [poor, gone, other] = ids;
  const reasons = await t.mutation(api.transfers.settle, {
    transfers: [
      move(gone, gone, -1),
      move(gone, gone, 1),
      move(poor, gone, 99),
      move(gone, poor, 99),
      move(poor, other, 99),
    ],
  });
  expect(reasons).toEqual([
    "INVALID_AMOUNT",
    "SAME_ACCOUNT",
    "NOT_FOUND",
    "NOT_FOUND",
    "INSUFFICIENT_FUNDS",
  ]);
});

test.each([
  ["an account itself", 0, 0, "SAME_ACCOUNT"],
  ["an account that is gone", 0, 2, "NOT_FOUND"],
  ["an account that has too little", 1, 0, "INSUFFICIENT_FUNDS"],
])("a transfer that fails because of %s throws", async (_, from, to, code) => {
  const { t, ids, held, stored } = await bank(500, 20, null);
  await expect(
    t.mutation(api.transfers.transfer, move(ids[from], ids[to], 21)),
  ).rejects.toMatchObject({ data: { code } });
  expect(await held()).toEqual([500, 20, null]);
  expect(await stored()).toEqual([]);
});

test("what can be settled is, and the rest changes nothing", async () => {
  const { t, ids, held, stored } = await bank(100, 0, null);
  const [payer, payee, gone] = ids;
  const reasons = await t.mutation(api.transfers.settle, {
    transfers: [move(payer, gone, 40), move(payer, payee, 30), move(payee, payer, 31)],
  });
  expect(reasons).toEqual(["NOT_FOUND", null, "INSUFFICIENT_FUNDS"]);
  expect(await held()).toEqual([70, 30, null]);
  expect(await stored()).toMatchObject([{ from: payer, to: payee, cents: 30 }]);
});

test("what was gained earlier can be spent later", async () => {
  const { t, ids, held } = await bank(50, 0, 0);
  const [first, second, third] = ids;
  const reasons = await t.mutation(api.transfers.settle, {
    transfers: [move(second, third, 50), move(first, second, 50), move(second, third, 50)],
  });
  expect(reasons).toEqual(["INSUFFICIENT_FUNDS", null, null]);
  expect(await held()).toEqual([0, 0, 50]);
});

test("an account can not be emptied twice", async () => {
  const { t, ids, held } = await bank(50, 0, 0);
  const reasons = await t.mutation(api.transfers.settle, {
    transfers: [move(ids[0], ids[1], 50), move(ids[0], ids[2], 50)],
  });
  expect(reasons).toEqual([null, "INSUFFICIENT_FUNDS"]);
  expect(await held()).toEqual([0, 50, 0]);
});

test("there may be nothing to settle", async () => {
  const { t } = await bank();
  expect(await t.mutation(api.transfers.settle, { transfers: [] })).toEqual([]);
});
