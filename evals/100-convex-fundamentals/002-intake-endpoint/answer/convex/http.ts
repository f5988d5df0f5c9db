import { httpRouter } from "convex/server";
import { internal } from "./_generated/api";
import { httpAction } from "./_generated/server";

type Reading = { sensor: string; celsius: number };

const http = httpRouter();

http.route({
  path: "/readings",
  method: "POST",
  handler: httpAction(async (ctx, request) => {
    const reading = readingFrom(await jsonOf(request));
    if (!reading) {
      return json(400, { error: "bad_request" });
    }
    return json(201, { id: await ctx.runMutation(internal.readings.record, reading) });
  }),
});

http.route({
  path: "/readings/latest",
  method: "GET",
  handler: httpAction(async (ctx, request) => {
    const sensor = new URL(request.url).searchParams.get("sensor");
    if (!sensor) {
      return json(400, { error: "bad_request" });
    }
    const reading = await ctx.runQuery(internal.readings.latest, { sensor });
    return reading ? json(200, reading) : json(404, { error: "not_found" });
  }),
});

async function jsonOf(request: Request): Promise<unknown> {
  try {
    return await request.json();
  } catch {
    return undefined;
  }
}

function readingFrom(body: unknown): Reading | null {
  if (typeof body !== "object" || body === null) {
    return null;
  }
  const { sensor, celsius } = body as Record<string, unknown>;
  if (typeof sensor !== "string" || sensor === "" || typeof celsius !== "number") {
    return null;
  }
  return { sensor, celsius };
}

function json(status: number, body: unknown): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { "Content-Type": "application/json" },
  });
}

export default http;
