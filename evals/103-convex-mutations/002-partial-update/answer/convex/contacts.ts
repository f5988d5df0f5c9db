import { ConvexError, v } from "convex/values";
import type { Doc } from "./_generated/dataModel";
import { mutation } from "./_generated/server";

const clearable = v.optional(v.union(v.string(), v.null()));

export const update = mutation({
  args: {
    id: v.id("contacts"),
    name: v.optional(v.string()),
    phone: clearable,
    email: clearable,
    addTags: v.optional(v.array(v.string())),
    removeTags: v.optional(v.array(v.string())),
  },
  returns: v.null(),
  handler: async (ctx, { id, name, phone, email, addTags = [], removeTags = [] }) => {
    const contact = await ctx.db.get(id);
    if (!contact) {
      throw new ConvexError("NOT_FOUND");
    }
    // In a patch, undefined removes a field: what is to stay must not be in it.
    const changes: Partial<Doc<"contacts">> = {};
    if (name !== undefined) {
      changes.name = named(name);
    }
    if (phone !== undefined) {
      changes.phone = phone?.trim() || undefined;
    }
    if (email !== undefined) {
      changes.email = email?.trim() || undefined;
    }
    const kept = contact.tags.filter((tag) => !removeTags.includes(tag));
    changes.tags = [...new Set([...kept, ...addTags])];
    await ctx.db.patch(id, changes);
    return null;
  },
});

function named(name: string): string {
  const trimmed = name.trim();
  if (trimmed === "") {
    throw new ConvexError("NAME_REQUIRED");
  }
  return trimmed;
}
