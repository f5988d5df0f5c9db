"""The commands that tell what there is and how it went, over journals made for them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from eval_pipeline.defs.instance import dagster_instance
from eval_pipeline.defs.partitions import MODELS
from eval_pipeline.journal import ATTEMPTS, SIGHTINGS, Journal
from eval_pipeline.journal.locks import hold_run_lock
from eval_pipeline.records.item import ItemKey
from eval_pipeline.records.model import Sighting
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Attempt, Run
from eval_pipeline.results.runs import run_rows
from eval_pipeline.results.tables.listing import models_table
from eval_pipeline.results.tables.runs import failed_tables, runs_table, status_table
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_journal,
    a_judgement,
    a_model,
    a_prediction,
    a_question,
    a_run,
    a_task,
    graded_code,
    settings_in,
)
from eval_pipeline_tests.project import call
from eval_pipeline_tests.terminal import in_terminal

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4//8/AAX+"
    "Av4N70a4AAAAAElFTkSuQmCC"
)
HOSTILE = "[red]\x1b[31mWhat\x07 is[/red] 1 + 1?"
QUESTIONS = [
    a_question("q1", question=HOSTILE),
    a_question("q2"),
    a_question("q3", category="Physics", image=PIXEL),
]
TASK = a_task()
EXAM = a_benchmark(*QUESTIONS, TASK)
PLAN = list(EXAM.items)
ESCAPE = "\x1b"


def opened(run_id: str, model: str, hour: int, **changes: object) -> Run:
    version = EXAM.version.benchmark_version
    at = NOON + timedelta(hours=hour)
    return a_run(run_id, model, PLAN, benchmark_version=version, opened_at=at, **changes)


def replies(run: Run, *keys: ItemKey, **changes: object) -> list[Prediction]:
    about = {"run_id": run.run_id, "model": run.model}
    return [a_prediction(key.item_id, suite=key.suite, **about, **changes) for key in keys]


def records() -> Iterator[Run | Prediction | Judgement]:
    """A run of each state, of a model each; that of demo/done was asked once before."""
    yield opened("00000000-old", "demo/done", 0)

    done = opened("11111111-done", "demo/done", 1)
    yield done
    yield from replies(done, *PLAN, usage={"cost_usd": 0.25})
    right, wrong, image, code = replies(done, *PLAN)
    yield from (a_judgement(right), a_judgement(image))
    yield a_judgement(wrong, 0.0, extracted_answer="43", reason="43 is not 42.")
    graded = graded_code().model_copy(update={"backend": "convex-test"})
    yield a_judgement(code, 0.0, reason="tests: empty", code=graded, graded_by="steps")

    failing = opened("22222222-fail", "demo/failing", 2)
    error = f"Too many {ESCAPE}[31mrequests [bold]"
    yield failing
    yield from replies(failing, *PLAN[:2])
    yield from map(a_judgement, replies(failing, *PLAN[:2]))
    yield from replies(failing, PLAN[2], outcome="rate_limited", answer=None, error=error)
    yield from replies(failing, PLAN[3], outcome="timeout", answer=None, error="Too late.")

    unjudged = opened("33333333-judge", "demo/unjudged", 3)
    yield unjudged
    yield from replies(unjudged, *PLAN)
    first, second, *_ = replies(unjudged, *PLAN)
    yield from (a_judgement(first), a_judgement(second, None, reason="No JSON."))

    half = opened("44444444-half", "demo/half", 4, experiment="web_search", simulated=False)
    yield half
    yield from replies(half, PLAN[0])


def an_exam(folder: Path) -> Path:
    """A project whose suites are those of the journal."""
    settings_in(folder, questions=QUESTIONS, experiments={"hot": {"temperature": 1.0}})
    journal = a_journal(folder / "data", *records(), benchmark=EXAM)
    models = [
        a_model("demo/done", web_search=True, prices={"prompt": 1e-6, "completion": 5e-6}),
        a_model("demo/half", simulated=False, context_length=128_000),
        a_model("demo/other"),
    ]
    seen = [Sighting(model=one, selected=one.name != "other", seen_at=NOON) for one in models]
    journal.write_whole(SIGHTINGS, "1", records=seen)
    return folder


@pytest.fixture(scope="module")
def exam(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return an_exam(tmp_path_factory.mktemp("exam"))


def told(project: Path, command: str) -> str:
    """What a command says that goes well."""
    done = call(project, command)
    assert done.returncode == 0, done.stderr
    assert ESCAPE not in done.stdout
    return done.stdout


def found(project: Path, command: str) -> Any:
    """What it says to programs: one JSON document."""
    return json.loads(told(project, f"{command} --json"))


def by_model(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["model"]: row for row in rows}


def test_list_counts_the_items_of_suites_and_categories(exam: Path) -> None:
    shown = told(exam, "evals list")
    (suite,) = found(exam, "evals list")["suites"]

    assert (suite["suite"], suite["kind"]) == ("sample", "exam")
    assert (suite["items"], suite["text_items"]) == (3, 2)
    assert suite["categories"] == [
        {"category": "Math", "items": 2, "text_items": 2},
        {"category": "Physics", "items": 1, "text_items": 0},
    ]
    assert "Physics" in shown


def test_list_tells_what_experiments_vary(exam: Path) -> None:
    rows = {one["experiment"]: one for one in found(exam, "evals list")["experiments"]}

    assert rows["default"]["is_chosen"] is True
    assert rows["hot"] == {"experiment": "hot", "is_chosen": False, "varies": {"temperature": 1.0}}
    assert rows["no_guidelines"]["varies"] == {"guidelines": False}
    assert "temperature = 1.0" in told(exam, "evals list")


@pytest.mark.parametrize(
    ("options", "items"),
    [
        ("-s sample", ["q1", "q2", "q3"]),
        ("-c Physics", ["q3"]),
        ("-f ^sample/Math/", ["q1", "q2"]),
        ("-c Math -f q2$", ["q2"]),
        ("-f nothing", []),
    ],
)
def test_list_shows_the_items_that_pass(exam: Path, options: str, items: list[str]) -> None:
    rows = found(exam, f"evals list {options}")

    assert [row["item_id"] for row in rows] == items
    assert f"Items: {len(items)} of 3." in told(exam, f"evals list {options}")


def test_an_item_is_told_with_its_image_and_how_its_question_begins(exam: Path) -> None:
    row = found(exam, "evals list -f q3")[0]
    shown = told(exam, "evals list -f q1")

    assert (row["suite"], row["category"], row["kind"]) == ("sample", "Physics", "exam")
    assert row["input"] == "image"
    assert "[red]\ufffd[31mWhat\ufffd is[/red] 1 + 1?" in shown


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("-s smple", "There is no suite 'smple'; closest: sample."),
        ("-c Mathh", "There is no category 'Mathh'; closest: Math."),
        ("-c Zoology", "There is no category 'Zoology'; there are, for example: Math, Physics."),
        ("-f (", "'(' is no regular expression: missing )"),
    ],
)
def test_what_is_not_there_is_answered_with_what_is(
    exam: Path, options: str, sentence: str
) -> None:
    done = call(exam, f"evals list {options}")

    assert done.returncode == 2
    assert sentence in done.stderr


def test_list_leaves_no_trace_in_the_journal(tmp_path: Path) -> None:
    settings_in(tmp_path)

    told(tmp_path, "evals list -s sample")

    assert not (tmp_path / "data" / "journal").exists()


def test_models_are_told_with_prices_abilities_and_their_latest_run(exam: Path) -> None:
    rows = by_model(found(exam, "evals models"))
    shown = told(exam, "evals models")

    assert list(rows) == ["demo/done", "demo/half"]
    assert rows["demo/done"]["completion_price"] == 5e-6
    assert rows["demo/done"]["web_search"] is True
    assert rows["demo/half"]["web_search"] is False
    assert rows["demo/done"]["run_id"] == "11111111-done"
    assert rows["demo/done"]["accuracy"] == 0.5
    assert "50.0% (15% to 85%) of 4" in shown
    assert "demo/done (simulated)" in shown
    assert "2025-01-01 16:00 (web_search)" in shown
    assert "Models: 2, and 1 more (--all)." in shown


@pytest.mark.parametrize(
    ("options", "models"),
    [
        ("--all", ["demo/done", "demo/half", "demo/other"]),
        ("-f OTH", ["demo/other"]),
        ("-f nobody", []),
    ],
)
def test_other_models_are_told_when_asked_for(exam: Path, options: str, models: list[str]) -> None:
    assert list(by_model(found(exam, f"evals models {options}"))) == models


def test_of_models_that_nobody_lists_the_closest_is_told(exam: Path) -> None:
    shown = told(exam, "evals models -f demo/dine")

    assert shown.startswith("There is no model 'demo/dine'; closest: demo/done")


STATES = [
    ("demo/done", "complete", None),
    ("demo/failing", "failed items", "evals fix 22222222"),
    ("demo/unjudged", "to judge", "evals fix 33333333 --judge"),
    ("demo/half", "unfinished", "evals run --resume 44444444"),
]


@pytest.mark.parametrize(("model", "state", "step"), STATES)
def test_status_tells_the_state_of_each_latest_run_and_what_to_do(
    exam: Path, model: str, state: str, step: str | None
) -> None:
    row = by_model(found(exam, "evals status"))[model]
    shown = told(exam, "evals status")

    assert row["state"] == state
    assert row["next_step"] == step
    assert step is None or f"({model}): {step}" in shown


def test_status_counts_failures_by_outcome_and_never_as_wrong(exam: Path) -> None:
    row = by_model(found(exam, "evals status"))["demo/failing"]
    shown = told(exam, "evals status")

    assert row["failures"] == {"rate_limited": 1, "timeout": 1}
    assert (row["answered"], row["failed"], row["judged"], row["correct"]) == (2, 2, 2, 2.0)
    assert row["accuracy"] == 1.0
    assert "rate_limited 1, timeout 1" in shown


def test_status_of_a_run_has_its_categories_and_the_steps_of_its_code(exam: Path) -> None:
    (row,) = found(exam, "evals status 1111")
    shown = told(exam, "evals status 1111")

    counted = {one["category"]: (one["judged"], one["correct"]) for one in row["categories"]}
    assert counted == {"words": (1, 0.0), "Math": (2, 1.0), "Physics": (1, 1.0)}
    assert (row["steps"][0]["graded"], row["steps"][0]["tests"]) == (1, 1)
    assert "how many answers failed first at which step" in shown
    assert "Nothing is left to do in this run." in shown


def test_an_earlier_run_is_left_out_of_the_latest_but_can_be_named(exam: Path) -> None:
    latest = by_model(found(exam, "evals status"))
    (row,) = found(exam, "evals status 00000000")

    assert latest["demo/done"]["run_id"] == "11111111-done"
    assert row["state"] == "unfinished"


@pytest.mark.parametrize(
    ("run", "items"),
    [
        ("1111", [("wrong", "001-words/001-sum"), ("wrong", "q2")]),
        ("2222", [("no answer", "001-words/001-sum"), ("no answer", "q3")]),
        ("3333", [("no verdict", "q2")]),
        ("4444", []),
    ],
)
def test_failed_items_are_told_in_groups(
    exam: Path, run: str, items: list[tuple[str, str]]
) -> None:
    rows = found(exam, f"evals status {run} --failed")

    assert [(row["went"], row["item_id"]) for row in rows] == items


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("1111", ["Wrong: scored below 1 (2)", "answered 43: 43 is not 42.", "tests: empty"]),
        ("2222", ["No answer: ", "rate_limited: Too many \ufffd[31mrequests [bold]", "Too late."]),
        ("3333", ["No verdict: ", "judge_unparsable: No JSON.", "2 not judged yet"]),
        ("4444", ["3 not asked yet", "1 not judged yet"]),
    ],
)
def test_what_failed_is_told_in_words_nobody_obeys(exam: Path, run: str, words: list[str]) -> None:
    shown = told(exam, f"evals status {run} --failed")

    assert [word for word in words if word not in shown] == []


def test_of_many_failed_items_the_first_are_told_and_the_command_that_tells_all(
    tmp_path: Path,
) -> None:
    questions = [a_question(f"q{number:02}") for number in range(25)]
    benchmark = a_benchmark(*questions)
    version = benchmark.version.benchmark_version
    runs = [
        a_run(f"{name}-0000", f"demo/{name}", list(benchmark.items), benchmark_version=version)
        for name in ("first000", "second00")
    ]
    given = [one for run in runs for one in replies(run, *run.plan)]
    wrong = [a_judgement(one, 0.0) for one in given]
    settings_in(tmp_path)
    a_journal(tmp_path / "data", *runs, *given, *wrong, benchmark=benchmark)

    few, everything = (told(tmp_path, f"evals status --failed{end}") for end in ("", " --all"))
    one = told(tmp_path, "evals status demo/first000@first000 --failed --all")

    assert (few.count("sample/q19 "), few.count("sample/q20 ")) == (2, 0)
    assert few.count("Wrong: scored below 1 (25)") == few.count("of 25 replies 0 no answer") == 2
    assert "… and 5 more: evals status demo/first000@first000 --failed --all" in few
    assert everything.count("sample/q24 ") == 2
    assert one.count("sample/q24 ") == 1
    assert "more: " not in everything
    assert len(found(tmp_path, "evals status --failed")) == 50


def test_an_older_run_of_everything_that_is_unfinished_is_told_too(tmp_path: Path) -> None:
    whole = opened("00000000-whole", "demo/done", 0)
    part = opened("11111111-part", "demo/done", 1, scope="filtered")
    given = replies(part, *PLAN)
    settings_in(tmp_path)
    judged = map(a_judgement, given)
    a_journal(tmp_path / "data", whole, part, *given, *judged, benchmark=EXAM)

    shown = told(tmp_path, "evals status")
    named = told(tmp_path, "evals status 1111")

    assert [row["run_id"] for row in found(tmp_path, "evals status")] == ["11111111-part"]
    assert "Also unfinished (demo/done): evals run --resume 00000000" in shown
    assert "Also unfinished" not in named


def test_the_command_that_is_told_shows_the_item(exam: Path) -> None:
    shown = told(exam, "evals status 1111 --failed")

    command = shown.rpartition("One in full: ")[2].strip()
    assert command == "evals show demo/done@11111111 coding/001-words/001-sum"
    assert "== Step tests: failed ==" in told(exam, command)
    assert "\nbackend: convex-test\n" in told(exam, command)


def test_runs_are_told_newest_first_and_by_model(exam: Path) -> None:
    rows = found(exam, "evals runs")
    shown = told(exam, "evals runs --limit 2")

    assert [row["run_id"][:4] for row in rows] == ["4444", "3333", "2222", "1111", "0000"]
    assert [row["run_id"][:4] for row in found(exam, "evals runs -m DONE")] == ["1111", "0000"]
    assert rows[3]["cost_usd"] == 1.0
    assert "44444444  demo/half (web_search)" in shown
    assert "demo/unjudged (simulated)" in shown
    assert "3 more: --limit 5" in shown


def test_an_unknown_model_or_run_is_answered_with_the_closest(exam: Path) -> None:
    model = call(exam, "evals runs -m demo/dne")
    run = call(exam, "evals status nowhere")

    assert (model.returncode, run.returncode) == (2, 2)
    assert "There is no run of a model 'demo/dne'; closest: demo/done" in model.stderr
    assert "There is no run 'nowhere'; the latest are 44444444, 33333333" in run.stderr


def test_runs_of_another_benchmark_version_say_so(tmp_path: Path) -> None:
    settings_in(tmp_path)
    a_journal(tmp_path / "data", opened("11111111-done", "demo/done", 0), benchmark=EXAM)
    newer = a_benchmark(a_question("new"), loaded_at=NOON + timedelta(days=1))
    a_journal(tmp_path / "data", benchmark=newer)

    (row,) = found(tmp_path, "evals runs")

    assert row["is_current"] is False
    assert EXAM.version.benchmark_version in told(tmp_path, "evals runs")


@contextmanager
def at_work(project: Path, launch: str) -> Iterator[None]:
    with hold_run_lock(project / "data" / "journal", launch):
        yield


def test_a_run_whose_process_is_alive_is_running(tmp_path: Path) -> None:
    project = an_exam(tmp_path)

    with at_work(project, "44444444-half"):
        rows = by_model(found(project, "evals status"))
    after = by_model(found(project, "evals status"))

    assert {model: row["state"] for model, row in rows.items() if row["at_work"]} == {
        "demo/half": "running"
    }
    assert rows["demo/half"]["next_step"] is None
    assert after["demo/half"]["state"] == "unfinished"


def test_a_run_that_another_launch_goes_on_with_is_running(tmp_path: Path) -> None:
    project = an_exam(tmp_path)
    attempt = Attempt(
        run_id="another-launch",
        model="demo/failing",
        experiment="default",
        filtered=False,
        repair=True,
        began_at=NOON,
    )
    Journal(project / "data" / "journal").write_whole(
        ATTEMPTS, attempt.model, attempt.run_id, records=[attempt]
    )

    with at_work(project, "another-launch"):
        rows = found(project, "evals runs")

    assert [row["model"] for row in rows if row["state"] == "running"] == ["demo/failing"]


def test_what_was_journalled_since_is_told_too(tmp_path: Path) -> None:
    project = an_exam(tmp_path)
    half = opened("44444444-half", "demo/half", 4)
    before = by_model(found(project, "evals status"))

    a_journal(project / "data", *replies(half, PLAN[1]), benchmark=EXAM)
    after = by_model(found(project, "evals status"))

    assert (before["demo/half"]["answered"], after["demo/half"]["answered"]) == (1, 2)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("evals runs", "There is no run yet: evals run"),
        ("evals status", "There is no run yet: evals run"),
        ("evals status --failed", "There is no run yet: evals run"),
        ("evals models", "evals job refresh_catalog"),
    ],
)
def test_where_nothing_was_run_yet_a_sentence_says_what_to_do(
    tmp_path: Path, command: str, sentence: str
) -> None:
    settings_in(tmp_path)

    assert sentence in told(tmp_path, command)
    assert found(tmp_path, command) == []


@pytest.mark.parametrize("command", ["evals show latest q1", "evals status latest"])
def test_where_nothing_was_run_yet_no_run_can_be_named(tmp_path: Path, command: str) -> None:
    settings_in(tmp_path)

    done = call(tmp_path, command)

    assert done.returncode == 2
    assert "there are none yet: evals run" in done.stderr


def test_due_is_told_to_programs_too(tmp_path: Path) -> None:
    project = an_exam(tmp_path)
    with dagster_instance(settings_in(project)) as instance:
        instance.add_dynamic_partitions(MODELS, ["demo/gone", "demo/done"])

    done, gone = found(project, "evals models --due")

    assert (done["model"], done["due"]) == ("demo/done", True)
    assert done["reason"].startswith("due since 2025-01-02 ")
    assert datetime.fromisoformat(done["due_at"]) > NOON
    assert (gone["model"], gone["due"], gone["due_at"]) == ("demo/gone", False, None)


def rows_of_long_names(project: Path) -> list[dict[str, Any]]:
    """The runs of the exam as if they were long, dear, and of models with such names."""
    told(project, "evals runs")
    warehouse = Warehouse(project / "data" / "evals.duckdb", Journal(project / "data" / "journal"))
    with warehouse.reading() as db:
        rows = run_rows(db, ())
    large = {"judged": 1000, "correct": 614.0, "cost_usd": 1234.5678}
    rate = {"accuracy": 0.614, "accuracy_low": 0.58, "accuracy_high": 0.64}
    name = "some-provider/a-very-long-{}-2026-05-12-preview"
    return [{**row, **large, **rate, "model": name.format(row["model"])} for row in rows]


@pytest.mark.parametrize("columns", [60, 80])
def test_long_names_break_no_table_of_runs(exam: Path, columns: int) -> None:
    rows = rows_of_long_names(exam)

    for table in (runs_table(rows), status_table(rows, "Runs")):
        paper = StringIO()
        Console(width=columns, file=paper, force_terminal=True, color_system=None).print(table)
        lines = paper.getvalue().splitlines()

        assert max(map(len, lines)) <= columns
        for row in rows:
            (line,) = [line for line in lines if row["run_id"][:8] in line]
            state = "failed" if row["state"] == "failed items" else row["state"]
            assert f" {row['answered']}/{row['planned']} " in line
            assert " 1000 " in line
            assert " 61.4% (58-64) " in line
            assert line.rstrip().endswith(f" {state}")


@pytest.mark.parametrize("columns", [60, 80])
def test_long_names_do_not_break_the_table_of_models(exam: Path, columns: int) -> None:
    rows = found(exam, "evals models --all")
    long = {"model": f"some-provider/{'very-' * 8}long", "opened_at": NOON, "judged": 1000}
    given = [{**row, **long, "model": f"{long['model']}-{n}"} for n, row in enumerate(rows)]

    paper = StringIO()
    terminal = Console(width=columns, file=paper, force_terminal=True, color_system=None)
    terminal.print(models_table(given))
    shown = paper.getvalue()

    assert max(map(len, shown.splitlines())) <= columns
    assert "50.0% (15-85) of 1000" in shown
    assert all(f"ong-{n}" in shown for n in range(len(rows)))


def test_what_failed_fits_into_a_narrow_terminal(exam: Path) -> None:
    replies = found(exam, "evals status 2222 --failed")

    paper = StringIO()
    given = [{**reply, "alike": len(replies)} for reply in replies]
    terminal = Console(width=60, file=paper, force_terminal=True, color_system=None)
    terminal.print(*failed_tables(given))

    assert max(map(len, paper.getvalue().splitlines())) <= 60
    assert "Too late." in paper.getvalue()


@pytest.mark.parametrize(
    ("pager", "rows", "is_paged"),
    [("sed s/^/paged:/", 20, True), ("sed s/^/paged:/", 200, False)],
)
def test_what_is_longer_than_the_screen_goes_through_the_pager(
    exam: Path, pager: str, rows: int, is_paged: bool
) -> None:
    variables = {"EVALS_PAGER": pager, "PAGER": "false"}
    command = "evals show 1111 q2"

    with in_terminal(exam, command, variables, columns=80, rows=rows) as terminal:
        assert terminal.end() == 0
        shown = terminal.everything

    assert ("paged:== Reply ==" in shown) is is_paged
    assert "== Reply ==" in shown
