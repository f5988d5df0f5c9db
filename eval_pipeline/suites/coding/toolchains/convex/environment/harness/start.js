// Starts a tool with the code cache that was filled when the environment was prepared. Node keeps
// one folder per user in it, and every sandbox may have a user of its own: so it is linked.
import { mkdirSync, readdirSync, symlinkSync } from "node:fs";
import module from "node:module";
import { join, resolve } from "node:path";

const [script, ...words] = process.argv.slice(2);
const directory = process.env.EVALS_CODE_CACHE;
const kept = resolve(import.meta.dirname, "../cache");

try {
  mkdirSync(directory, { recursive: true });
  for (const name of readdirSync(kept)) {
    symlinkSync(join(kept, name), join(directory, name.replace(/-\d+$/, `-${process.getuid()}`)));
  }
} catch {
  // It only takes longer.
}
module.enableCompileCache({ directory, portable: true });
Object.assign(process.env, { NODE_COMPILE_CACHE: directory, NODE_COMPILE_CACHE_PORTABLE: "1" });
process.argv = [process.argv[0], script, ...words];
await import(script);
