import { convexTest } from "convex-test";
import { expect, test } from "vitest";
import { api } from "../convex/_generated/api";
import schema from "../convex/schema";

const modules = import.meta.glob("../convex/**/*.*s");

const backend = (documentsRead = 1000) =>
  convexTest({ schema, modules, transactionLimits: { documentsRead } });
type Backend = ReturnType<typeof backend>;

const course = (t: Backend, title: string) =>
  t.run((ctx) => ctx.db.insert("courses", { title }));
const student = (t: Backend, name: string) =>
  t.run((ctx) => ctx.db.insert("students", { name }));
const enrolments = (t: Backend) => t.run((ctx) => ctx.db.query("enrolments").collect());

/** Forty students in each of two courses besides the one that matters. */
async function crowd(t: Backend) {
  await t.run(async (ctx) => {
    for (const title of ["Chemistry", "Drama"]) {
      const courseId = await ctx.db.insert("courses", { title });
      for (let number = 0; number < 40; number += 1) {
        const studentId = await ctx.db.insert("students", { name: `${title} ${number}` });
        await ctx.db.insert("enrolments", { courseId, studentId });
      }
    }
  });
}

test("an enrolment connects a student and a course", async () => {
  const t = backend();
  const [courseId, studentId] = [await course(t, "Algebra"), await student(t, "Ada")];
  const id = await t.mutation(api.enrolments.enrol, { courseId, studentId });
  expect(await t.run((ctx) => ctx.db.get(id))).toMatchObject({ courseId, studentId });
});

test("enrolling again changes nothing", async () => {
  const t = backend();
  const pair = { courseId: await course(t, "Algebra"), studentId: await student(t, "Ada") };
  const first = await t.mutation(api.enrolments.enrol, pair);
  expect(await t.mutation(api.enrolments.enrol, pair)).toBe(first);
  expect(await enrolments(t)).toHaveLength(1);
});

test("nobody can enrol in a course that is gone", async () => {
  const t = backend();
  const [courseId, studentId] = [await course(t, "Algebra"), await student(t, "Ada")];
  await t.run((ctx) => ctx.db.delete(courseId));
  await expect(
    t.mutation(api.enrolments.enrol, { courseId, studentId }),
  ).rejects.toMatchObject({ data: "NOT_FOUND" });
  expect(await enrolments(t)).toEqual([]);
});

test("a student who is gone can not enrol", async () => {
  const t = backend();
  const [courseId, studentId] = [await course(t, "Algebra"), await student(t, "Ada")];
  await t.run((ctx) => ctx.db.delete(studentId));
  await expect(
    t.mutation(api.enrolments.enrol, { courseId, studentId }),
  ).rejects.toMatchObject({ data: "NOT_FOUND" });
});

test("both directions are listed, sorted", async () => {
  const t = backend();
  const [first, second] = [await course(t, "Botany"), await course(t, "Algebra")];
  const [zoe, ada] = [await student(t, "Zoe"), await student(t, "Ada")];
  await t.mutation(api.enrolments.enrol, { courseId: first, studentId: zoe });
  await t.mutation(api.enrolments.enrol, { courseId: first, studentId: ada });
  await t.mutation(api.enrolments.enrol, { courseId: second, studentId: zoe });
  expect(await t.query(api.enrolments.studentsOf, { courseId: first })).toEqual(["Ada", "Zoe"]);
  expect(await t.query(api.enrolments.studentsOf, { courseId: second })).toEqual(["Zoe"]);
  expect(await t.query(api.enrolments.coursesOf, { studentId: zoe })).toEqual([
    "Algebra",
    "Botany",
  ]);
});

test("courses that were deleted are left out", async () => {
  const t = backend();
  const [gone, kept] = [await course(t, "Algebra"), await course(t, "Botany")];
  const studentId = await student(t, "Ada");
  await t.mutation(api.enrolments.enrol, { courseId: gone, studentId });
  await t.mutation(api.enrolments.enrol, { courseId: kept, studentId });
  await t.run((ctx) => ctx.db.delete(gone));
  expect(await t.query(api.enrolments.coursesOf, { studentId })).toEqual(["Botany"]);
});

test("removing a student removes the student's enrolments and no others", async () => {
  const t = backend();
  const [algebra, botany] = [await course(t, "Algebra"), await course(t, "Botany")];
  const [ada, zoe] = [await student(t, "Ada"), await student(t, "Zoe")];
  for (const courseId of [algebra, botany]) {
    await t.mutation(api.enrolments.enrol, { courseId, studentId: ada });
  }
  await t.mutation(api.enrolments.enrol, { courseId: algebra, studentId: zoe });
  expect(await t.mutation(api.enrolments.removeStudent, { studentId: ada })).toBe(2);
  expect(await t.run((ctx) => ctx.db.get(ada))).toBeNull();
  expect(await enrolments(t)).toMatchObject([{ courseId: algebra, studentId: zoe }]);
});

test("removing a student twice is harmless", async () => {
  const t = backend();
  const studentId = await student(t, "Ada");
  expect(await t.mutation(api.enrolments.removeStudent, { studentId })).toBe(0);
  expect(await t.mutation(api.enrolments.removeStudent, { studentId })).toBe(0);
});

test("no function reads what others are enrolled in", async () => {
  const t = backend(15);
  await crowd(t);
  const [courseId, studentId] = [await course(t, "Algebra"), await student(t, "Ada")];
  await t.mutation(api.enrolments.enrol, { courseId, studentId });
  expect(await t.query(api.enrolments.studentsOf, { courseId })).toEqual(["Ada"]);
  expect(await t.query(api.enrolments.coursesOf, { studentId })).toEqual(["Algebra"]);
  expect(await t.mutation(api.enrolments.removeStudent, { studentId })).toBe(1);
});

test("enrolling in a full course reads only a few documents", async () => {
  const t = backend(5);
  const courseId = await course(t, "Algebra");
  await t.run(async (ctx) => {
    for (let number = 0; number < 30; number += 1) {
      const studentId = await ctx.db.insert("students", { name: `Student ${number}` });
      await ctx.db.insert("enrolments", { courseId, studentId });
    }
  });
  const studentId = await student(t, "Ada");
  await t.run(async (ctx) => {
    for (let number = 0; number < 30; number += 1) {
      const other = await ctx.db.insert("courses", { title: `Course ${number}` });
      await ctx.db.insert("enrolments", { courseId: other, studentId });
    }
  });
  const id = await t.mutation(api.enrolments.enrol, { courseId, studentId });
  expect(await t.mutation(api.enrolments.enrol, { courseId, studentId })).toBe(id);
});
