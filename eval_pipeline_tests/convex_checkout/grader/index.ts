import { ConvexClient } from "convex/browser";
import { expect } from "vitest";
export { projectFile } from "./files.js";

const port = process.env.CONVEX_PORT;
if (!port) throw new Error("CONVEX_PORT is not set");

export const siteUrl = `http://localhost:${process.env.CONVEX_SITE_PORT}`;
export const client = new ConvexClient(`http://localhost:${port}`);
export const admin = new ConvexClient(`http://localhost:${port}`);
(admin as any).setAdminAuth("a key that everybody knows");
const reference = new ConvexClient(`http://localhost:${process.env.CONVEX_ANSWER_PORT}`);
(reference as any).setAdminAuth("a key that everybody knows");

export function as(subject: string) {
  const other = new ConvexClient(`http://localhost:${port}`);
  (other as any).setAdminAuth("a key that everybody knows", { subject, issuer: "https://doors" });
  return other;
}

export async function rows(table: string, limit = 32): Promise<any[]> {
  const found: any[] = await admin.query("_system/frontend/listTableScan" as any, { table, limit });
  return found.reverse();
}

export async function empty(table: string): Promise<void> {
  await admin.mutation("_system/frontend/clearTablePage" as any, { tableName: table, cursor: null });
}

export async function put(table: string, documents: unknown[]): Promise<void> {
  const { success, error } = (await admin.mutation("_system/frontend/addDocument" as any, {
    table,
    documents,
  })) as { success: boolean; error?: string };
  if (!success) throw new Error(error);
}

async function schemaOf(who: ConvexClient) {
  const { active } = (await who.query("_system/frontend/getSchemas" as any, {})) as { active: string };
  return JSON.parse(active);
}

export async function sameSchema(): Promise<void> {
  expect(await schemaOf(admin)).toEqual(await schemaOf(reference));
}

export async function sameFunctions(): Promise<void> {
  const told = async (who: ConvexClient) => await who.query("_system/cli/modules:apiSpec" as any, {});
  expect(await told(admin)).toEqual(await told(reference));
}
