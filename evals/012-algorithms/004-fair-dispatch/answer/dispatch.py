"""When jobs of several tenants start on a shared pool of workers."""

import heapq
from collections import Counter, deque

Job = tuple[str, str, int, int]


def start_times(jobs: list[Job], workers: int, per_tenant: int) -> dict[str, int]:
    """Plays through all moments at which a job arrives or ends."""
    if workers < 1 or per_tenant < 1:
        raise ValueError("workers and per_tenant must be at least 1")
    # Sorting is stable, so jobs that arrive together keep the order in which they were given.
    arriving = deque(sorted(jobs, key=lambda job: job[2]))
    waiting: list[Job] = []
    ends: list[tuple[int, str]] = []
    running: Counter[str] = Counter()
    starts: dict[str, int] = {}
    moments = [job[2] for job in arriving]
    while moments:
        now = heapq.heappop(moments)
        while ends and ends[0][0] == now:
            running[heapq.heappop(ends)[1]] -= 1
        while arriving and arriving[0][2] == now:
            waiting.append(arriving.popleft())
        while len(ends) < workers and (job := _next(waiting, running, per_tenant)):
            waiting.remove(job)
            id, tenant, _, duration = job
            starts[id] = now
            running[tenant] += 1
            heapq.heappush(ends, (now + duration, tenant))
            heapq.heappush(moments, now + duration)
    return starts


def _next(waiting: list[Job], running: Counter[str], per_tenant: int) -> Job | None:
    """The job to start next; `waiting` is in order of arrival, and `min` takes the first."""
    able = [job for job in waiting if running[job[1]] < per_tenant]
    return min(able, key=lambda job: running[job[1]], default=None)
