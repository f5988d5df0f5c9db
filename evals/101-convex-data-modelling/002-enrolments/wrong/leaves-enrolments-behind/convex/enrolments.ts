import { ConvexError, v } from "convex/values";
import { mutation, query } from "./_generated/server";

export const enrol = mutation({
  args: { courseId: v.id("courses"), studentId: v.id("students") },
  returns: v.id("enrolments"),
  handler: async (ctx, { courseId, studentId }) => {
    if (!(await ctx.db.get(courseId)) || !(await ctx.db.get(studentId))) {
      throw new ConvexError("NOT_FOUND");
    }
    const existing = await ctx.db
      .query("enrolments")
      .withIndex("by_course", (q) => q.eq("courseId", courseId).eq("studentId", studentId))
      .unique();
    if (existing) return existing._id;
    return await ctx.db.insert("enrolments", { courseId, studentId });
  },
});

export const studentsOf = query({
  args: { courseId: v.id("courses") },
  returns: v.array(v.string()),
  handler: async (ctx, { courseId }) => {
    const rows = await ctx.db
      .query("enrolments")
      .withIndex("by_course", (q) => q.eq("courseId", courseId))
      .collect();
    const students = await Promise.all(rows.map((row) => ctx.db.get(row.studentId)));
    return students.filter((student) => student !== null).map((student) => student.name).sort();
  },
});

export const coursesOf = query({
  args: { studentId: v.id("students") },
  returns: v.array(v.string()),
  handler: async (ctx, { studentId }) => {
    const rows = await ctx.db
      .query("enrolments")
      .withIndex("by_student", (q) => q.eq("studentId", studentId))
      .collect();
    const courses = await Promise.all(rows.map((row) => ctx.db.get(row.courseId)));
    return courses.filter((course) => course !== null).map((course) => course.title).sort();
  },
});

export const removeStudent = mutation({
  args: { studentId: v.id("students") },
  returns: v.number(),
  handler: async (ctx, { studentId }) => {
    if (!(await ctx.db.get(studentId))) return 0;
    const rows = await ctx.db
      .query("enrolments")
      .withIndex("by_student", (q) => q.eq("studentId", studentId))
      .collect();
    await ctx.db.delete(studentId);
    return rows.length;
  },
});
