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
    const body = await request.json().catch(() => null);
    if (!body?.sensor || !body?.celsius) {
      return json({ error: "bad_request" }, 400);
    }
    const id = await ctx.runMutation(internal.readings.record, {
      sensor: String(body.sensor),
      celsius: Number(body.celsius),
    });
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
    return reading ? json(reading, 200) : json({ error: "not_found" }, 404);
  }),
});

export default http;
