import { cronJobs } from "convex/server";
import { internal } from "./_generated/api";

const crons = cronJobs();
crons.interval("sweep", { hours: 1 }, internal.bell.ring, { door: "the back door" });

export default crons;
