// What the web finds at a deployment's addresses: HTTP actions, stored files, and calls of functions.

import { probed } from "./probe.js";

const STORAGE = "https://some-deployment.convex.cloud/api/storage/";
const CALLS = ["query", "mutation", "action"];

/** The response, or undefined if the request is meant for somebody else. */
export async function answerFetch(request, { cloud, site, backend }) {
  const { origin, pathname, search } = new URL(request.url);
  if (request.url.startsWith(STORAGE)) return await stored(request, await backend().test());
  if (origin === site) {
    const init = { method: request.method, headers: request.headers };
    if (request.body) init.body = await request.arrayBuffer();
    return await (await backend().test()).fetch(`${pathname}${search}`, init);
  }
  return origin === cloud ? await asked(pathname, request, backend()) : undefined;
}

async function stored(request, test) {
  if (request.method === "POST") {
    const type = request.headers.get("content-type") ?? undefined;
    const blob = new Blob([await request.arrayBuffer()], { type });
    return Response.json({ storageId: await test.run((ctx) => ctx.storage.store(blob)) });
  }
  // A file's address ends with its hash.
  const hash = request.url.slice(STORAGE.length);
  const blob = await test.run(async (ctx) => {
    const files = await ctx.db.system.query("_storage").collect();
    const file = files.find(({ sha256 }) => sha256 === hash);
    return file ? await contents(ctx, file._id) : null;
  });
  if (blob === null) return new Response("File not found", { status: 404 });
  return new Response(blob.bytes, { headers: { "content-type": blob.type } });
}

async function contents(ctx, id) {
  const blob = await ctx.storage.get(id);
  return blob && { bytes: await blob.arrayBuffer(), type: blob.type };
}

async function asked(path, request, deployment) {
  if (path === "/api/update_environment_variables") {
    for (const { name, value } of (await request.json()).changes) {
      if (value === null || value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    return Response.json(null);
  }
  if (path === "/api/run_test_function") {
    return Response.json(await probed(await deployment.test(), (await request.json()).bundle.source));
  }
  const type = CALLS.find((name) => path === `/api/${name}`);
  if (!type) return new Response("Not found", { status: 404 });
  const { path: name, args } = await request.json();
  const isAdmin = (request.headers.get("authorization") ?? "").startsWith("Convex ");
  try {
    const value = await deployment.call(type, name, args, { isAdmin });
    return Response.json({ status: "success", value });
  } catch (error) {
    return Response.json({ status: "error", errorMessage: error.message });
  }
}
