"""Entries by their scores: mirrored, in thirds, and ranks that agree with the comparisons."""

from collections.abc import Iterator

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from eval_pipeline.results.comparisons import Entry, compare_entries, compare_scores
from eval_pipeline.results.queries import query_text
from eval_pipeline.results.stats.bootstrap import seed_of
from eval_pipeline.results.stats.intervals import Interval
from eval_pipeline.results.stats.pairs import compare
from eval_pipeline_tests.boards import ITEMS, Scores, scores_of
from eval_pipeline_tests.sampled import Row, rows_of

JUDGE = ("demo/judge", "v1")


def an_entry(number: int, *, model: str, replies: int = 1) -> Entry:
    return Entry(number, model, "default", *JUDGE, "full", replies)


@pytest.mark.parametrize("replies", [1, 3])
def test_swapped_models_mirror_the_comparison_exactly(replies: int) -> None:
    first, second = (
        scores_of(skill, seed=replies, samples=replies).mean(axis=1) for skill in (0.7, 0.4)
    )
    a, b = (an_entry(n, model=f"demo/{n}", replies=replies) for n in (1, 2))
    clusters = np.arange(ITEMS, dtype=np.int64) // 4

    there = compare_scores(a, b, first, second, clusters=clusters, units=np.arange(ITEMS))
    back = compare_scores(b, a, second, first, clusters=clusters, units=np.arange(ITEMS))

    assert back.paired.interval and back.paired.bootstrap
    mirrored = back.paired._replace(
        difference=-back.paired.difference,
        interval=Interval(-back.paired.interval.high, -back.paired.interval.low),
        bootstrap=Interval(-back.paired.bootstrap.high, -back.paired.bootstrap.low),
        better=back.paired.worse,
        worse=back.paired.better,
    )
    assert there.paired == mirrored
    assert there.standard_error_clustered == back.standard_error_clustered
    assert (there.accuracy_a, there.accuracy_b) == (back.accuracy_b, back.accuracy_a)


def test_partial_scores_of_a_single_reply_are_no_matter_of_right_or_wrong() -> None:
    a, b = an_entry(1, model="demo/a"), an_entry(2, model="demo/b")
    halves, zeros = np.array([0.5, 1, 1]), np.zeros(3)

    found = compare_scores(a, b, halves, zeros, clusters=np.arange(3), units=np.arange(3))

    assert found.paired.test == "sign_flip"
    assert found.paired.p_value == pytest.approx(2 / 8)


def test_means_of_several_replies_are_no_matter_of_right_or_wrong_even_if_all_agree() -> None:
    first, second = np.array([1.0, 1.0, 0.0]), np.zeros(3)

    tests = [
        compare_scores(
            an_entry(1, model="demo/a", replies=a),
            an_entry(2, model="demo/b", replies=b),
            first,
            second,
            clusters=np.arange(3),
            units=np.arange(3),
        ).paired.test
        for a, b in [(1, 1), (1, 2), (2, 1), (2, 2)]
    ]

    assert tests == ["mcnemar", "sign_flip", "sign_flip", "sign_flip"]


def test_means_of_three_replies_are_compared_as_thirds() -> None:
    a, b = (an_entry(n, model=f"demo/{n}", replies=3) for n in (1, 2))
    first, second = (
        scores_of(skill, seed=n, samples=3).mean(axis=1) for n, skill in enumerate((0.7, 0.4))
    )
    thirds, counts = np.unique(np.rint(3 * (first - second)), return_counts=True)

    alone = np.arange(ITEMS)
    found = compare_scores(a, b, first, second, clusters=alone, units=alone)

    seed = seed_of("demo/1 default", "demo/2 default", *JUDGE)
    assert found.paired == compare(thirds / 3, counts, binary=False, seed=seed)


@pytest.fixture(scope="module")
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables that models are compared by, without rows."""
    with duckdb.connect() as connection:
        statements = connection.extract_statements(query_text("derive/entries"))
        for statement in statements[-2:]:
            connection.execute(statement)
        connection.execute(
            "create temp table entries (entry integer, model varchar, experiment varchar, "
            "judge varchar, judge_version varchar, scope varchar, runs bigint, samples bigint)"
        )
        connection.execute(
            "create temp table entry_scores "
            "(entry integer, item integer, cluster integer, score double)"
        )
        connection.execute(
            "create temp table exam as select unnest(range(40)) as item, item as unit"
        )
        yield connection


def ranked(db: duckdb.DuckDBPyConnection, table: Scores, *, replies: int) -> list[Row]:
    """Each row of the table as an entry of one board, best first; the rows of `ranks`."""
    for name in ("entries", "entry_scores", "compared", "ranks"):
        db.execute(f"delete from {name}")
    for entry, scores in enumerate(sorted(table.tolist(), key=sum, reverse=True), start=1):
        values = f"{entry}, 'm{entry}', 'default', 'j', 'v', 'full', {replies}, 1"
        db.execute(f"insert into entries values ({values})")
        db.execute(
            "insert into entry_scores select ?, unnest(range(len($2))), 0, unnest($2)",
            [entry, scores],
        )
    compare_entries(db)
    return rows_of(
        db,
        "select ranks.*, rank() over (order by round(accuracy, 12) desc) as rank from ranks "
        "join (select entry, avg(score) as accuracy from entry_scores group by entry) "
        "using (entry) order by entry",
    )


@hypothesis_settings(max_examples=40, deadline=None, database=None)
@given(
    skills=st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]), min_size=1, max_size=6),
    items=st.integers(1, 40),
    replies=st.integers(1, 3),
    seed=st.integers(0, 10**6),
)
def test_ranks_and_letters_say_what_the_comparisons_say(
    db: duckdb.DuckDBPyConnection, skills: list[float], items: int, replies: int, seed: int
) -> None:
    drawn = np.random.default_rng(seed).random((len(skills), items, replies))
    table = (drawn < np.array(skills)[:, np.newaxis, np.newaxis]).mean(axis=2)

    found = ranked(db, table, replies=replies)

    pairs = db.sql("select entry_a, entry_b, difference, p_adjusted from compared").fetchall()
    assert len(pairs) == len(skills) * (len(skills) - 1) // 2
    beaten = {(a, b) for a, b, difference, p in pairs if p < 0.05 and difference > 0}
    assert len(beaten) == sum(p < 0.05 for *_, p in pairs)
    letters = {row["entry"]: set(row["ties"]) for row in found}
    for a, b, *_ in pairs:
        assert bool(letters[a] & letters[b]) == ((a, b) not in beaten)
    for row in found:
        better = sum(worse == row["entry"] for _, worse in beaten)
        worse = sum(best == row["entry"] for best, _ in beaten)
        assert (row["rank_low"], row["rank_high"]) == (1 + better, len(skills) - worse)
        # On the same items a model that is significantly better has the higher accuracy.
        assert row["rank_low"] <= row["rank"] <= row["rank_high"]
