import { httpRouter } from "convex/server";
import { internal } from "./_generated/api";
import { httpAction } from "./_generated/server";

const http = httpRouter();

http.route({
  path: "/ring",
  method: "POST",
  handler: httpAction(async (ctx, request) => {
    const body = (await request.json()) as { door?: unknown };
    if (typeof body.door !== "string") return new Response("Which door?", { status: 400 });
    await ctx.runMutation(internal.bell.ring, { door: body.door });
    return new Response(null, { status: 202 });
  }),
});

export default http;
