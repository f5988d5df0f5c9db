"""When jobs of several tenants start on a shared pool of workers."""

import heapq

Job = tuple[str, str, int, int]


def start_times(jobs: list[Job], workers: int, per_tenant: int) -> dict[str, int]:
    """Gives each job, in order of arrival, the earliest time at which both limits allow it."""
    if workers < 1 or per_tenant < 1:
        raise ValueError("workers and per_tenant must be at least 1")
    pool: list[int] = []
    tenants: dict[str, list[int]] = {}
    starts: dict[str, int] = {}
    for id, tenant, arrival, duration in sorted(jobs, key=lambda job: job[2]):
        slots = tenants.setdefault(tenant, [])
        start = arrival
        if len(pool) == workers:
            start = max(start, heapq.heappop(pool))
        if len(slots) == per_tenant:
            start = max(start, heapq.heappop(slots))
        heapq.heappush(pool, start + duration)
        heapq.heappush(slots, start + duration)
        starts[id] = start
    return starts
