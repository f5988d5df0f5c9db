"""Intervals that are cautious where nothing differs."""

import numpy as np
import pytest

from eval_pipeline.results.stats.intervals import cautious
from eval_pipeline.results.stats.pairs import compare


def test_the_interval_is_that_of_single_pairs_where_each_task_was_done_by_one_model() -> None:
    differences = [1.0] * 3 + [-1.0] * 9 + [0.0] * 40

    found = cautious(differences, range(len(differences)))

    values, counts = np.unique(differences, return_counts=True)
    expected = compare(values, counts, binary=True, seed=1).interval
    assert found.interval == pytest.approx(expected)


def test_models_that_do_the_same_on_a_task_count_once() -> None:
    differences, tasks = [-1.0] * 9 + [0.0] * 41, list(range(50))

    once = cautious(differences, tasks)
    thrice = cautious(differences * 3, tasks * 3)
    apart = cautious(differences * 3, range(150))

    assert thrice.interval == pytest.approx(once.interval)
    assert apart.standard_error < 0.7 * once.standard_error


def test_tasks_with_more_models_weigh_more() -> None:
    differences, tasks = [-1.0] * 3 + [0.0] * 20, [0, 0, 0, *range(1, 21)]

    found = cautious(differences, tasks)

    middle = (found.interval.low + found.interval.high) / 2
    assert middle == pytest.approx(-3 / 23 * 21 / 23)
