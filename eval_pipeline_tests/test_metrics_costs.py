"""What replies cost and how fast they came: what is unknown is not 0, and all attempts count."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from eval_pipeline.records.prediction import Prediction, Usage
from eval_pipeline.results.charts import plot
from eval_pipeline.results.queries import query
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline_tests.boards import EXAM, ITEMS, Records, answers, scores_of, taken, verdicts
from eval_pipeline_tests.builders import NOON, a_benchmark, a_prediction, a_question, a_run
from eval_pipeline_tests.test_metrics import FOUR, Row, a_run_of_four, published, rows, whole_runs

COSTS = ("cost_usd", "cost_known_usd", "costs_unknown")
TOKENS = ("input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens")
UNTOLD = Usage()
METERED = Usage(input_tokens=10, output_tokens=5)
PAID = Usage(input_tokens=10, output_tokens=5, cost_usd=0.25)
EXACT = PAID.model_copy(update={"cost_estimated": False})
FREE = Usage(input_tokens=10, output_tokens=5, cost_usd=0)


def a_line(item_id: str = "q0", number: int = 0, **changes: object) -> Prediction:
    """One of the lines for an item, written so many minutes after noon."""
    later = {"finished_at": NOON + timedelta(minutes=number)}
    return a_prediction(item_id, **{"prediction_id": f"{item_id} {number}", **later, **changes})


def published_cases(folder: Path, cases: Mapping[str, Iterable[Prediction]]) -> Warehouse:
    """A run of its own for each case, by a model of that name."""
    records: Records = []
    for name, lines in cases.items():
        run = a_run_of_four(model=f"case/{name}")
        records += [run, *(line.model_copy(update={"model": run.model}) for line in lines)]
    return published(folder, *records)


def by_case(found: Iterable[Row]) -> dict[str, Row]:
    return {row["model"].removeprefix("case/"): row for row in found}


# Of each reply its outcome and what it used; then what is told of the run: COSTS.
REPLIES: Mapping[str, tuple[Sequence[tuple[str, Usage]], tuple[float | None, ...]]] = {
    "nothing-asked": ([], (None, None, 0)),
    "all-known": ([("ok", PAID)] * 4, (1.0, 1.0, 0)),
    "half-known": ([("ok", PAID), ("ok", METERED)] * 2, (None, 0.5, 2)),
    "none-known": ([("ok", UNTOLD)] * 4, (None, None, 4)),
    "free": ([("ok", FREE)] * 4, (0, 0, 0)),
    "refused-unknown": ([("ok", PAID), ("refused", UNTOLD)], (None, 0.25, 1)),
    "failed-for-nothing": ([("ok", PAID), ("timeout", UNTOLD)], (0.25, 0.25, 0)),
    "failed-with-tokens": ([("ok", PAID), ("empty", METERED)], (None, 0.25, 1)),
    "failed-and-paid": ([("ok", PAID), ("empty", PAID)], (0.5, 0.5, 0)),
    "all-failed": ([("timeout", UNTOLD)] * 4, (None, None, 0)),
}


def test_a_cost_is_told_only_if_it_is_known_of_every_reply(tmp_path: Path) -> None:
    cases = {
        name: [
            a_line(f"q{n}", outcome=outcome, usage=usage)
            for n, (outcome, usage) in enumerate(replies)
        ]
        for name, (replies, _) in REPLIES.items()
    }

    found = by_case(whole_runs(published_cases(tmp_path, cases)))

    told = {name: tuple(row[column] for column in COSTS) for name, row in found.items()}
    assert told == {name: costs for name, (_, costs) in REPLIES.items()}


def test_an_unknown_cost_is_unknown_in_its_own_slices_and_the_summary_shows_the_rest(
    tmp_path: Path,
) -> None:
    questions = [a_question("q0"), a_question("q1"), a_question("q2", category="Physics")]
    exam = a_benchmark(*questions)
    run = a_run(plan=exam.items, benchmark_version=exam.version.benchmark_version)
    replies = [a_line("q0", usage=PAID), a_line("q1", usage=PAID), a_line("q2")]

    warehouse = published(tmp_path, run, *replies, benchmark=exam)

    columns = ", ".join(("slice", "category", *COSTS))
    found = rows(warehouse, f"select {columns} from metrics order by slice, category")
    assert [tuple(row.values()) for row in found] == [
        ("all", None, None, 0.5, 1),
        ("category", "Math", 0.5, 0.5, 0),
        ("category", "Physics", None, None, 1),
        ("input", None, None, 0.5, 1),
        ("suite", None, None, 0.5, 1),
    ]
    with warehouse.reading() as db:
        summary = query(db, "summaries/metrics").project(", ".join(COSTS)).fetchall()
    assert summary == [(None, 0.5, 1)]


def test_a_model_whose_cost_is_known_in_part_is_not_drawn_as_a_cheap_one(tmp_path: Path) -> None:
    records: Records = []
    for model, known in (("lab/whole", ITEMS), ("lab/part", ITEMS // 2)):
        run = taken(model, simulated=False)
        replies = [
            one.model_copy(update={"usage": PAID if n < known else METERED})
            for n, one in enumerate(answers(run))
        ]
        records += [run, *replies, *verdicts(run, scores_of(0.5, seed=1))]

    warehouse = published(tmp_path, *records, benchmark=EXAM)

    board = rows(warehouse, "select model, cost_usd from leaderboard order by model")
    assert [tuple(row.values()) for row in board] == [
        ("lab/part", None),
        ("lab/whole", 0.25 * ITEMS),
    ]
    with warehouse.reading() as db:
        drawn = plot(db, "accuracy_and_cost")["accuracy_and_cost"].svg()
    assert "Cost unknown, so not drawn: lab/part." in drawn


# Of each attempt at one item its outcome and what it used; then the item's cost, and whether that
# is an estimate.
ATTEMPTS: Mapping[str, tuple[Sequence[tuple[str, Usage]], float | None, bool]] = {
    "paid-twice": ([("empty", PAID), ("ok", PAID)], 0.5, True),
    "told-twice": ([("empty", EXACT), ("ok", EXACT)], 0.5, False),
    "first-is-an-estimate": ([("empty", PAID), ("ok", EXACT)], 0.5, True),
    "last-is-an-estimate": ([("empty", EXACT), ("ok", PAID)], 0.5, True),
    "failed-for-nothing-first": ([("timeout", UNTOLD), ("ok", EXACT)], 0.25, False),
    "failed-for-nothing-last": ([("empty", EXACT), ("timeout", UNTOLD)], 0.25, False),
    "first-used-tokens": ([("empty", METERED), ("ok", EXACT)], None, False),
    "first-was-answered": ([("ok", UNTOLD), ("ok", EXACT)], None, False),
    "last-is-unknown": ([("empty", EXACT), ("ok", METERED)], None, False),
}


def test_an_item_has_a_cost_if_that_of_every_attempt_is_known(tmp_path: Path) -> None:
    cases = {
        name: [
            a_line(number=n, outcome=outcome, usage=usage)
            for n, (outcome, usage) in enumerate(lines)
        ]
        for name, (lines, _, _) in ATTEMPTS.items()
    }

    warehouse = published_cases(tmp_path, cases)

    expected = {name: (cost, estimated) for name, (_, cost, estimated) in ATTEMPTS.items()}
    found = by_case(rows(warehouse, "from predictions"))
    assert {row["prediction_id"] for row in found.values()} == {"q0 1"}
    assert {
        name: (row["cost_usd"], row["cost_estimated"]) for name, row in found.items()
    } == expected
    runs = by_case(whole_runs(warehouse))
    assert {name: (row["cost_usd"], row["costs_unknown"]) for name, row in runs.items()} == {
        name: (cost, int(cost is None)) for name, (cost, _) in expected.items()
    }


def some_lines(chance: Random) -> list[Prediction]:
    """Up to four attempts at each item, in any order, with numbers of which any may be missing."""

    def some() -> int | None:
        return chance.choice([None, chance.randrange(1000)])

    lines = [
        a_line(
            item_id,
            number,
            outcome=chance.choice(["empty", "timeout", "ok"]),
            usage={name: some() for name in TOKENS},
        )
        for _, item_id in FOUR.items
        for number in range(chance.randint(1, 4))
    ]
    return chance.sample(lines, len(lines))


def totals(lines: Sequence[Prediction]) -> Row:
    used = {name: [getattr(line.usage, name) for line in lines] for name in TOKENS}
    known = {name: [one for one in used[name] if one is not None] for name in TOKENS}
    return {name: sum(numbers) if numbers else None for name, numbers in known.items()}


def test_tokens_are_those_of_all_attempts_at_an_item(tmp_path: Path) -> None:
    cases = {f"{seed}": some_lines(Random(seed)) for seed in range(10)}

    warehouse = published_cases(tmp_path, cases)

    found = rows(warehouse, "from predictions")
    assert len(found) == len(cases) * len(FOUR.items)
    for row in found:
        of_case = cases[row["model"].removeprefix("case/")]
        of_item = [line for line in of_case if line.item_id == row["item_id"]]
        assert {name: row[name] for name in TOKENS} == totals(of_item)
    for name, run in by_case(whole_runs(warehouse)).items():
        in_all = {column: run[column] for column in TOKENS if column in run}
        assert len(in_all) == 3
        assert in_all.items() <= totals(cases[name]).items()


# Output tokens, reasoning tokens within them, reasoning text, seconds to the first text, and what
# comes of it if the reply was complete after three seconds.
SPEEDS: Mapping[str, tuple[int | None, int | None, str | None, float | None, float | None]] = {
    "no-reasoning": (100, None, None, 1, 50),
    "none-counted": (100, 0, None, 1, 50),
    "hidden-so-over-before-the-first-text": (100, 80, None, 1, 10),
    "sent-without-a-word": (100, 80, "", 1, 10),
    "streamed-while-the-clock-ran": (100, 80, "Hm.", 1, 50),
    "nothing-but-hidden-reasoning": (100, 100, None, 1, None),
    "numbers-that-contradict-each-other": (20, 80, None, 1, None),
    "not-told": (None, 80, None, 1, None),
    "no-tokens": (0, None, None, 1, None),
    "not-streamed": (100, None, None, None, None),
    "all-at-once": (100, None, None, 3, None),
}


def test_a_reply_is_as_fast_as_the_tokens_that_came_while_the_clock_ran(tmp_path: Path) -> None:
    cases = {
        name: [
            a_line(
                usage=Usage(output_tokens=output, reasoning_tokens=thought),
                reasoning=reasoning,
                latency_s=3,
                first_token_s=first,
            )
        ]
        for name, (output, thought, reasoning, first, _) in SPEEDS.items()
    }

    warehouse = published_cases(tmp_path, cases)

    expected = {name: per_s for name, (*_, per_s) in SPEEDS.items()}
    for found in (rows(warehouse, "from predictions"), whole_runs(warehouse)):
        speeds = {name: row["output_tokens_per_s"] for name, row in by_case(found).items()}
        assert speeds == pytest.approx(expected)


def test_earlier_attempts_add_tokens_but_make_no_reply_faster(tmp_path: Path) -> None:
    first = a_line(outcome="empty", usage=Usage(output_tokens=900, reasoning_tokens=900))
    used = Usage(output_tokens=100, reasoning_tokens=20)
    last = a_line(number=1, usage=used, latency_s=3, first_token_s=1)

    warehouse = published(tmp_path, a_run_of_four(), first, last)

    (run,) = whole_runs(warehouse)
    assert (run["output_tokens"], run["reasoning_tokens"]) == (1000, 920)
    assert run["output_tokens_per_s"] == pytest.approx((100 - 20) / 2)
