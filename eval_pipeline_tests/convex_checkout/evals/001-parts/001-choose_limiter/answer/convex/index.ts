import { RateLimiter } from "@convex-dev/rate-limiter";
