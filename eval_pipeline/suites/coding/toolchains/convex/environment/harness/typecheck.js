// Looks for comments that silence the compiler, then runs it.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { tellSilencers } from "./modules.js";

const [project, tsc] = process.argv.slice(2);
const silenced = tellSilencers(project, /@ts-(?:nocheck|ignore|expect-error)/);
const flags = ["--project", join(project, "harness/tsconfig.json"), "--pretty", "false"];
const { status } = spawnSync(tsc, flags, { stdio: "inherit", cwd: project });
process.exitCode = silenced ? 1 : (status ?? 2);
