"""Start times of jobs: limits, fairness, ties, and moments at which much happens."""

import random

import pytest
from dispatch import start_times

Job = tuple[str, str, int, int]


def jobs_of(*texts: str) -> list[Job]:
    """Jobs from "id arrival duration"; the first letter of an id is the tenant."""
    parts = [text.split() for text in texts]
    return [(id, id[0], int(arrival), int(duration)) for id, arrival, duration in parts]


def one_by_one(jobs: list[Job], workers: int, per_tenant: int) -> dict[str, int]:
    """The rules taken literally, one unit of time after the other."""
    starts: dict[str, int] = {}
    now = 0
    while len(starts) < len(jobs):
        running = [job for job in jobs if job[0] in starts and now < starts[job[0]] + job[3]]
        counts = {job[1]: sum(other[1] == job[1] for other in running) for job in jobs}
        ranked = [
            (counts[job[1]], job[2], place, job[0])
            for place, job in enumerate(jobs)
            if job[0] not in starts and job[2] <= now and counts[job[1]] < per_tenant
        ]
        if ranked and len(running) < workers:
            starts[min(ranked)[3]] = now
        else:
            now += 1
    return starts


def test_jobs_start_when_they_arrive_while_there_are_workers() -> None:
    jobs = jobs_of("a1 0 5", "b1 2 5", "c1 3 1")

    assert start_times(jobs, 3, 1) == {"a1": 0, "b1": 2, "c1": 3}


def test_no_jobs_have_no_start_times() -> None:
    assert start_times([], 1, 1) == {}


def test_a_worker_that_gets_free_is_used_at_once() -> None:
    jobs = jobs_of("a1 0 5", "b1 1 5", "c1 10 1")

    assert start_times(jobs, 1, 1) == {"a1": 0, "b1": 5, "c1": 10}


def test_a_tenant_at_its_limit_does_not_hold_up_others() -> None:
    jobs = jobs_of("a1 0 5", "a2 0 5", "a3 0 5", "b1 1 2")

    assert start_times(jobs, 2, 1) == {"a1": 0, "a2": 5, "a3": 10, "b1": 1}


def test_the_tenant_with_the_fewest_running_jobs_goes_first() -> None:
    jobs = jobs_of("a1 0 9", "a2 1 9", "b1 2 9", "c1 0 3")

    assert start_times(jobs, 2, 2) == {"a1": 0, "c1": 0, "b1": 3, "a2": 9}


def test_a_job_just_started_counts_for_the_next_choice() -> None:
    jobs = jobs_of("a1 0 9", "a2 0 9", "b1 0 9", "b2 0 9", "c1 0 9")

    starts = start_times(jobs, 3, 3)

    assert starts == {"a1": 0, "b1": 0, "c1": 0, "a2": 9, "b2": 9}


def test_jobs_that_end_together_free_all_their_workers_before_anything_starts() -> None:
    jobs = jobs_of("a1 0 4", "b1 0 4", "a2 1 4", "a3 1 4", "b2 2 4")

    starts = start_times(jobs, 2, 2)

    assert starts == {"a1": 0, "b1": 0, "a2": 4, "b2": 4, "a3": 8}


def test_a_job_that_arrives_when_a_worker_gets_free_takes_part_in_the_choice() -> None:
    jobs = jobs_of("a1 0 9", "b1 0 4", "a2 1 4", "c1 4 4")

    assert start_times(jobs, 2, 2) == {"a1": 0, "b1": 0, "c1": 4, "a2": 8}


def test_ties_go_to_the_earliest_arrival_and_then_to_the_place_in_the_list() -> None:
    jobs = jobs_of("z1 0 2", "y1 0 2", "x1 0 2", "c1 1 2", "b1 2 2", "a1 2 2")

    starts = start_times(jobs, 1, 1)

    assert sorted(starts, key=lambda id: starts[id]) == ["z1", "y1", "x1", "c1", "b1", "a1"]


def test_jobs_may_be_given_in_any_order_of_arrival() -> None:
    jobs = jobs_of("c1 7 2", "a2 3 5", "b1 1 4", "a1 0 3")

    assert start_times(jobs, 1, 1) == {"a1": 0, "b1": 3, "a2": 7, "c1": 12}


def test_times_may_be_negative_and_far_apart() -> None:
    jobs = jobs_of("a1 -7 1000000000000", "b1 -3 2", "c1 5000000000000 1")

    starts = start_times(jobs, 1, 1)

    assert starts == {"a1": -7, "b1": 999999999993, "c1": 5000000000000}


@pytest.mark.parametrize(("workers", "per_tenant"), [(1, 1), (2, 1), (3, 2), (5, 5)])
def test_many_jobs_follow_the_rules_at_every_moment(workers: int, per_tenant: int) -> None:
    dice = random.Random(workers * 10 + per_tenant)
    jobs = [
        (f"j{number}", dice.choice("ABC"), dice.randrange(40), dice.randint(1, 6))
        for number in range(40)
    ]

    assert start_times(jobs, workers, per_tenant) == one_by_one(jobs, workers, per_tenant)


@pytest.mark.parametrize(("workers", "per_tenant"), [(0, 1), (1, 0), (-1, 1), (1, -1)])
def test_a_pool_that_can_run_nothing_is_refused(workers: int, per_tenant: int) -> None:
    with pytest.raises(ValueError):
        start_times([], workers, per_tenant)
