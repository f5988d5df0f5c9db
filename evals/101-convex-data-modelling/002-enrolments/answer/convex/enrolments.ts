import { ConvexError, v } from "convex/values";
import type { Doc, Id } from "./_generated/dataModel";
import { mutation, query, type QueryCtx } from "./_generated/server";

export const enrol = mutation({
  args: { courseId: v.id("courses"), studentId: v.id("students") },
  returns: v.id("enrolments"),
  handler: async (ctx, { courseId, studentId }) => {
    const [course, student] = await Promise.all([ctx.db.get(courseId), ctx.db.get(studentId)]);
    if (!course || !student) {
      throw new ConvexError("NOT_FOUND");
    }
    const existing = await ctx.db
      .query("enrolments")
      .withIndex("by_course_and_student", (q) =>
        q.eq("courseId", courseId).eq("studentId", studentId),
      )
      .unique();
    return existing?._id ?? (await ctx.db.insert("enrolments", { courseId, studentId }));
  },
});

export const studentsOf = query({
  args: { courseId: v.id("courses") },
  returns: v.array(v.string()),
  handler: async (ctx, { courseId }) => {
    const enrolments = await ctx.db
      .query("enrolments")
      .withIndex("by_course_and_student", (q) => q.eq("courseId", courseId))
      .collect();
    const students = await Promise.all(enrolments.map(({ studentId }) => ctx.db.get(studentId)));
    return students.flatMap((student) => (student ? [student.name] : [])).sort();
  },
});

export const coursesOf = query({
  args: { studentId: v.id("students") },
  returns: v.array(v.string()),
  handler: async (ctx, { studentId }) => {
    const enrolments = await enrolmentsOf(ctx, studentId);
    const courses = await Promise.all(enrolments.map(({ courseId }) => ctx.db.get(courseId)));
    return courses.flatMap((course) => (course ? [course.title] : [])).sort();
  },
});

export const removeStudent = mutation({
  args: { studentId: v.id("students") },
  returns: v.number(),
  handler: async (ctx, { studentId }) => {
    if (!(await ctx.db.get(studentId))) {
      return 0;
    }
    const enrolments = await enrolmentsOf(ctx, studentId);
    await Promise.all(enrolments.map(({ _id }) => ctx.db.delete(_id)));
    await ctx.db.delete(studentId);
    return enrolments.length;
  },
});

async function enrolmentsOf(
  ctx: QueryCtx,
  studentId: Id<"students">,
): Promise<Doc<"enrolments">[]> {
  return await ctx.db
    .query("enrolments")
    .withIndex("by_student", (q) => q.eq("studentId", studentId))
    .collect();
}
