import { convexTest } from "convex-test";
import { expect, test } from "vitest";
import { api } from "../convex/_generated/api";
import schema from "../convex/schema";

const modules = import.meta.glob("../convex/**/*.*s");

const backend = (documentsRead = 1000) =>
  convexTest({ schema, modules, transactionLimits: { documentsRead } });
type Backend = ReturnType<typeof backend>;
type Ticket = { project?: string; title: string; open?: boolean; priority?: number };

const add = (t: Backend, ...tickets: Ticket[]) =>
  t.run((ctx) =>
    Promise.all(
      tickets.map((ticket) =>
        ctx.db.insert("tickets", { project: "web", open: true, priority: 1, ...ticket }),
      ),
    ),
  );

/** Tickets "0", "1", …, of which every third is open. */
const addMany = (t: Backend, count: number) =>
  add(t, ...Array.from({ length: count }, (_, n) => ({ title: `${n}`, open: n % 3 === 0 })));

const list = (t: Backend, numItems: number, cursor: string | null = null) =>
  t.query(api.tickets.listOpen, { project: "web", paginationOpts: { numItems, cursor } });

/** The titles of every page, to the end. */
async function pages(t: Backend, numItems: number) {
  const titles: string[][] = [];
  let cursor: string | null = null;
  for (let count = 0; count < 20; count += 1) {
    const result: Awaited<ReturnType<typeof list>> = await list(t, numItems, cursor);
    titles.push(result.page.map(({ title }) => title));
    if (result.isDone) return titles;
    cursor = result.continueCursor;
  }
  throw new Error("The pages do not come to an end.");
}

test("a page shows some fields of open tickets and how to go on", async () => {
  const t = backend();
  const [id] = await add(t, { title: "Broken link", priority: 3 });
  const result = await list(t, 5);
  expect(result).toStrictEqual({
    page: [{ _id: id, title: "Broken link", priority: 3 }],
    isDone: true,
    continueCursor: expect.any(String),
  });
});

test("urgent tickets come first, and new ones before old ones", async () => {
  const t = backend();
  await add(t, { title: "old", priority: 2 }, { title: "urgent", priority: 10 });
  await add(t, { title: "new", priority: 2 }, { title: "minor", priority: -1 });
  expect((await pages(t, 10)).flat()).toEqual(["urgent", "new", "old", "minor"]);
});

test("closed tickets and those of other projects are not listed", async () => {
  const t = backend();
  await add(t, { title: "mine" }, { title: "closed", open: false });
  await add(t, { title: "other", project: "app" });
  expect((await pages(t, 10)).flat()).toEqual(["mine"]);
});

test("pages are full, and together they hold every open ticket once", async () => {
  const t = backend();
  await addMany(t, 30);
  const titles = (await pages(t, 4)).filter((page) => page.length > 0);
  expect(titles.map((page) => page.length)).toEqual([4, 4, 2]);
  expect(titles.flat()).toEqual(["27", "24", "21", "18", "15", "12", "9", "6", "3", "0"]);
});

test("without tickets there is one empty page", async () => {
  expect(await pages(backend(), 4)).toEqual([[]]);
});

test("a page reads little, however many tickets there are", async () => {
  const t = backend(8);
  await addMany(t, 90);
  await add(t, ...Array.from({ length: 30 }, () => ({ title: "x", project: "app" })));
  const first = await list(t, 5);
  expect(first.page.map(({ title }) => title)).toEqual(["87", "84", "81", "78", "75"]);
  const second = await list(t, 5, first.continueCursor);
  expect(second.page.map(({ title }) => title)).toEqual(["72", "69", "66", "63", "60"]);
});

test("a ticket that is closed disappears from the list", async () => {
  const t = backend();
  const [id] = await add(t, { title: "done", priority: 4 }, { title: "todo" });
  expect(await t.mutation(api.tickets.close, { id })).toBeNull();
  expect((await pages(t, 10)).flat()).toEqual(["todo"]);
  expect(await t.run((ctx) => ctx.db.get(id))).toMatchObject({ open: false, priority: 4 });
});

test("what is gone can not be closed", async () => {
  const t = backend();
  const [id] = await add(t, { title: "gone" });
  await t.run((ctx) => ctx.db.delete(id));
  await expect(t.mutation(api.tickets.close, { id })).rejects.toMatchObject({ data: "NOT_FOUND" });
});
