"""How far a run had come when it ended: counted from the journal, as it was at that time."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from eval_pipeline.journal import PREDICTIONS, Journal
from eval_pipeline.results.runs import Asked, Ended, read_ended
from eval_pipeline_tests.builders import NOON, a_journal, a_judgement, a_prediction, a_run

PLAN = [("sample", f"q{number}") for number in range(1, 5)]
FAILED = {"outcome": "timeout", "answer": None, "error": "no"}


def hour(number: int) -> datetime:
    return NOON + timedelta(hours=number)


def asked(
    *run_ids: str, models: tuple[str, ...] | None = None, at: int | None = None, end: int = 9
) -> Asked:
    """What was asked within half an hour of that time, if any is given; else nothing was."""
    half = timedelta(minutes=30)
    since, until = (hour(0), hour(end)) if at is None else (hour(at) - half, hour(at) + half)
    return Asked(
        run_ids=run_ids,
        models=models,
        since=since.replace(tzinfo=None),
        until=until.replace(tzinfo=None),
        predicted=at is not None,
    )


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Journal:
    """A run of a strong model that went on an hour later, and one of a weak model."""
    usage = {"input_tokens": 5, "output_tokens": 5, "cost_usd": 0.5}
    first = a_prediction("q1", usage=usage)
    carried = a_prediction("q3", usage=usage, carried_from="run-0")
    unknown = {"input_tokens": 5, "output_tokens": 5}
    weak = {"run_id": "run-2", "model": "demo/weak"}
    return a_journal(
        tmp_path_factory.mktemp("journal"),
        a_run(plan=PLAN),
        a_run(**weak, plan=PLAN, samples=2),
        first,
        carried,
        a_prediction("q2", finished_at=hour(1), **FAILED),
        a_prediction("q1", **weak, finished_at=hour(1), usage=unknown),
        *(a_prediction(f"q{number}", **weak, **FAILED) for number in (2, 3, 4)),
        a_judgement(first, launch="judging", usage=usage),
        a_judgement(carried, None, launch="judging", usage=usage, carried_from="run-0"),
    )


STRONG = Ended(
    model="demo/strong",
    planned=4,
    predicted="ok 2, timeout 1",
    judged="ok 1, judge_unparsable 1",
    cost_usd=1.0,
    costs_unknown=0,
)
WEAK = Ended(
    model="demo/weak",
    planned=8,
    predicted="ok 1, timeout 3",
    judged="",
    cost_usd=0.0,
    costs_unknown=1,
)
AN_HOUR_BEFORE = STRONG.model_copy(update={"predicted": "ok 2"})


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        pytest.param(asked("run-1"), [STRONG], id="the run that it opened"),
        pytest.param(asked("no run"), [], id="nothing"),
        pytest.param(asked("judging"), [STRONG], id="the run that it judged"),
        pytest.param(asked("x", at=1), [WEAK, STRONG], id="the runs that it went on with"),
        pytest.param(asked("x", models=("demo/weak",), at=1), [WEAK], id="of its own models"),
        pytest.param(asked("x", at=2), [], id="what others did before"),
        pytest.param(asked("run-1", models=("demo/weak",)), [], id="not of another model"),
        pytest.param(asked("run-1", "run-2"), [WEAK, STRONG], id="its parts"),
        pytest.param(asked("run-1", end=0), [AN_HOUR_BEFORE], id="before others went on"),
    ],
)
def test_the_counts_are_of_the_runs_it_had_to_do_with_most_failures_first(
    journal: Journal, asked: Asked, found: list[Ended]
) -> None:
    assert read_ended(journal, asked) == tuple(found)


def test_a_failure_that_was_made_good_since_had_not_been_so_then(tmp_path: Path) -> None:
    replies = a_prediction("q1", **FAILED), a_prediction("q1", finished_at=hour(1))
    journal = a_journal(tmp_path, a_run(plan=PLAN), *replies)

    then, now = (read_ended(journal, asked("run-1", end=end)) for end in (0, 1))

    assert [one.predicted for one in (*then, *now)] == ["timeout 1", "ok 1"]


def test_a_run_that_was_killed_before_the_first_reply_had_none(tmp_path: Path) -> None:
    journal = a_journal(tmp_path, a_run(plan=PLAN))

    (one,) = read_ended(journal, asked("run-1"))

    assert (one.planned, one.predicted, one.cost_usd) == (4, "", 0)


def test_where_there_is_no_journal_there_are_no_counts(tmp_path: Path) -> None:
    assert read_ended(Journal(tmp_path / "none"), asked("run-1")) == ()
    assert not list(tmp_path.iterdir())


def test_a_journal_that_can_not_be_read_costs_the_counts_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = a_journal(tmp_path, a_run(plan=PLAN), a_prediction())
    (file,) = journal.files(PREDICTIONS)
    file.rename(file.with_suffix(".parquet"))

    assert read_ended(journal, asked("run-1")) == ()
    assert "The counts can not be read now" in caplog.text
