// What the reference's deployment would tell; it was described apart, and is not here.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { adminView } from "./description.js";

const file = join(resolve(import.meta.dirname, ".."), "description.json");

/** It can be asked for nothing else. */
export function answerOf(name) {
  return adminView(name, JSON.parse(readFileSync(file, "utf8")));
}
