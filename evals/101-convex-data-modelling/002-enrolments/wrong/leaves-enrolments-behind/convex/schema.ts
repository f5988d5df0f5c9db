import { defineSchema, defineTable } from "convex/server";
import { v } from "convex/values";

export default defineSchema({
  courses: defineTable({ title: v.string() }),
  students: defineTable({ name: v.string() }),
  enrolments: defineTable({ courseId: v.id("courses"), studentId: v.id("students") })
    .index("by_course", ["courseId", "studentId"])
    .index("by_student", ["studentId"]),
});
