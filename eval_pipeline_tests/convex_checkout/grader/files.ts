import { readFileSync } from "node:fs";
import { join } from "node:path";

export function projectFile(path: string): string {
  const folder = process.env.MODEL_OUTPUT_DIR;
  if (!folder) throw new Error("MODEL_OUTPUT_DIR is not set");
  return readFileSync(join(folder, path), "utf8");
}
