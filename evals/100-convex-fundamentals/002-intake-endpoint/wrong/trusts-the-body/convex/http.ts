import { httpRouter } from "convex/server";
import { internal } from "./_generated/api";
import { httpAction } from "./_generated/server";

const http = httpRouter();

const json = (body: unknown, status: number) =>
  new Response(JSON.stringify(body), {
    status,
    headers: { "Content-Type": "application/json" },
  });

http.route({
  path: "/readings",
  method: "POST",
  handler: httpAction(async (ctx, request) => {
    const { sensor, celsius } = await request.json();
    if (typeof sensor !== "string" || !sensor || typeof celsius !== "number") {
      return json({ error: "bad_request" }, 400);
    }
    const id = await ctx.runMutation(internal.readings.record, { sensor, celsius });
    return json({ id }, 201);
  }),
});

http.route({
  path: "/readings/latest",
  method: "GET",
  handler: httpAction(async (ctx, request) => {
    const sensor = new URL(request.url).searchParams.get("sensor");
    if (!sensor) return json({ error: "bad_request" }, 400);
    const reading = await ctx.runQuery(internal.readings.latest, { sensor });
    if (!reading) return json({ error: "not_found" }, 404);
    return json(reading, 200);
  }),
});

export default http;
