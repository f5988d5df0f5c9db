// Two addresses in the sandbox behind which the backend is: what is asked there goes out by the channel.
import { createServer } from "node:http";

async function bodyOf(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString("base64");
}

function headersOf({ headers }) {
  const named = ["content-type", "accept", "convex-client"].filter((name) => headers[name]);
  return Object.fromEntries(named.map((name) => [name, headers[name]]));
}

/** Whether a grader asks as an admin, by our client or in its own words; its key is not ours. */
function isAdmin({ headers }) {
  return "x-evals-admin" in headers || (headers.authorization ?? "").startsWith("Convex ");
}

/** `ports` are by name: "cloud" for functions, "site" for HTTP actions. */
export async function listen(reporter, ports) {
  for (const [to, port] of Object.entries(ports)) {
    const server = createServer(async (request, response) => {
      try {
        const said = await reporter.ask({
          to,
          method: request.method,
          path: request.url,
          headers: headersOf(request),
          body: await bodyOf(request),
          as_admin: isAdmin(request),
          identity: decodeURIComponent(request.headers["x-evals-identity"] ?? ""),
        });
        response.writeHead(said.status, said.headers).end(Buffer.from(said.body, "base64"));
      } catch (error) {
        response.writeHead(502).end(String(error));
      }
    });
    await new Promise((resolve) => server.listen(Number(port), "localhost", resolve));
    server.unref();
  }
}
