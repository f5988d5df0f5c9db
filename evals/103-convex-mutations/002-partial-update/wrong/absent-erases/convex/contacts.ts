import { ConvexError, v } from "convex/values";
import { mutation } from "./_generated/server";

export const update = mutation({
  args: {
    id: v.id("contacts"),
    name: v.optional(v.string()),
    phone: v.optional(v.union(v.string(), v.null())),
    email: v.optional(v.union(v.string(), v.null())),
    addTags: v.optional(v.array(v.string())),
    removeTags: v.optional(v.array(v.string())),
  },
  returns: v.null(),
  handler: async (ctx, { id, name, phone, email, addTags, removeTags }) => {
    const contact = await ctx.db.get(id);
    if (!contact) throw new ConvexError("NOT_FOUND");
    if (name !== undefined && !name.trim()) throw new ConvexError("NAME_REQUIRED");
    const tags = new Set(contact.tags);
    for (const tag of removeTags ?? []) tags.delete(tag);
    for (const tag of addTags ?? []) tags.add(tag);
    await ctx.db.patch(id, {
      name: name?.trim() ?? contact.name,
      phone: phone?.trim() || undefined,
      email: email?.trim() || undefined,
      tags: [...tags],
    });
    return null;
  },
});
