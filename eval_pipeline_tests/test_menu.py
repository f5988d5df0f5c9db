"""`evals` without a command: keys choose what to run, and the command that is shown is run."""

import sys
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from eval_pipeline.cli import menu
from eval_pipeline.cli.menu import selectable_models, unfinished_launches
from eval_pipeline.errors import RunError
from eval_pipeline.journal import SIGHTINGS, Journal
from eval_pipeline.records.model import Sighting
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_journal,
    a_judgement,
    a_model,
    a_prediction,
    a_question,
    a_run,
    settings_in,
)
from eval_pipeline_tests.project import a_project, run
from eval_pipeline_tests.stand import Stand
from eval_pipeline_tests.terminal import (
    CTRL_C,
    DOWN,
    ENTER,
    ESCAPE,
    SPACE,
    UP,
    Terminal,
    in_terminal,
)

PLAN = (("sample", "q1"), ("sample", "q2"), ("sample", "q3"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four launches: one complete, and one each that lacks replies, a try in vain, a verdict."""
    folder = tmp_path_factory.mktemp("menu")
    settings = settings_in(folder)
    benchmark = a_benchmark(*(a_question(item_id) for _, item_id in PLAN))
    version = benchmark.version.benchmark_version
    runs = {
        name: a_run(
            f"{name}-0000",
            plan=PLAN,
            benchmark_version=version,
            opened_at=NOON + timedelta(hours=hour),
        )
        for hour, name in enumerate(("complete", "unjudged", "unlucky0", "unasked0"))
    }
    replies = {
        name: [a_prediction(item_id, run_id=one.run_id) for _, item_id in PLAN]
        for name, one in runs.items()
    }
    replies["unasked0"] = replies["unasked0"][:1]
    last = replies["unlucky0"][-1]
    replies["unlucky0"][-1] = last.model_copy(update={"outcome": "timeout", "answer": ""})
    judged = [
        a_judgement(one, 0.0)
        for name, given in replies.items()
        for one in (given[:2] if name in {"unjudged", "unlucky0"} else given)
    ]
    predictions = [one for given in replies.values() for one in given]
    journal = a_journal(settings.data, *runs.values(), *predictions, *judged, benchmark=benchmark)
    seen = [
        Sighting(model=a_model(name), selected=True, seen_at=NOON)
        for name in ("demo/strong", "demo/weak")
    ]
    journal.write_whole(SIGHTINGS, "20250101T120000.0", records=seen)
    Warehouse(settings.database, journal).publish()
    return folder


def test_launches_that_lack_something_are_listed_with_what_they_lack(project: Path) -> None:
    with duckdb.connect(str(project / "data" / "evals.duckdb"), read_only=True) as db:
        found = unfinished_launches(db)

    assert [(one.run_id[:8], one.not_asked, one.failed, one.not_judged) for one in found] == [
        ("unasked0", 2, 0, 0),
        ("unlucky0", 0, 1, 0),
        ("unjudged", 0, 0, 1),
    ]


def test_a_model_is_offered_with_what_its_newest_scores_say(project: Path) -> None:
    settings = Settings.from_env({"EVALS_SETTINGS": str(project / "eval_pipeline.toml")})

    with duckdb.connect(str(settings.database), read_only=True) as db:
        offered = selectable_models(settings, Journal(settings.journal), db)

    assert [(one.model.id, one.accuracy, one.judged) for one in offered] == [
        ("demo/strong", 0.0, 1),
        ("demo/weak", None, 0),
    ]


def test_no_gateway_is_asked_for_models_that_are_known(stand: Stand) -> None:
    seen = [Sighting(model=a_model("demo/strong"), selected=True, seen_at=NOON)]
    stand.journal.write_whole(SIGHTINGS, "20250101T120000.0", records=seen)

    with Warehouse(stand.settings.database, stand.journal).reading() as db:
        offered = selectable_models(stand.settings, stand.journal, db)

    assert [one.model.id for one in offered] == ["demo/strong"]


def test_gateways_are_asked_if_no_model_is_known(stand: Stand) -> None:
    with Warehouse(stand.settings.database, stand.journal).reading() as db:
        offered = selectable_models(stand.settings, stand.journal, db)

    assert [one.model.id for one in offered] == ["demo/average", "demo/strong", "demo/weak"]
    assert list(stand.journal.read(SIGHTINGS)) == []


def test_a_selection_that_nothing_fits_is_told(stand: Stand) -> None:
    settings = stand.settings.overridden({"selection": {"models": ("demo/strng",)}})

    with (
        Warehouse(settings.database, stand.journal).reading() as db,
        pytest.raises(RunError, match="No model matches 'demo/strng'; closest: demo/strong"),
    ):
        selectable_models(settings, stand.journal, db)


def choose(terminal: Terminal, *steps: tuple[str, str]) -> None:
    """Waits for each question and presses the keys that answer it."""
    for question, keys in steps:
        terminal.wait_for(question)
        terminal.press(keys)


@pytest.mark.slow
def test_keys_choose_a_model_and_a_category_and_start_the_command_that_is_shown(
    tmp_path: Path,
) -> None:
    project = a_project(tmp_path)

    with in_terminal(project, "evals", columns=100) as terminal:
        choose(
            terminal,
            ("What do you want to do?", ENTER),
            ("Which models?", DOWN + DOWN + SPACE + ENTER),
            ("Which items?", DOWN + ENTER),
            ("Which categories?", "math" + SPACE + ENTER),
            ("Under which experiment?", ENTER),
            ("How many items", "2" + ENTER),
            ("US dollars", ENTER),
        )
        terminal.wait_for("evals run -m demo/strong -c Math -e default --max-samples 2")
        choose(terminal, ("Start it?", ENTER))

        assert terminal.end() == 0, terminal.everything

    with duckdb.connect(str(project / "data" / "evals.duckdb"), read_only=True) as db:
        found = db.sql(
            "select model, category, score is null from judged join items using (item_id)"
        )
        assert found.fetchall() == [("demo/strong", "Math", False)] * 2


def test_escape_goes_back_and_the_last_word_counts(project: Path) -> None:
    with in_terminal(project, "evals") as terminal:
        choose(
            terminal,
            ("What do you want to do?", ENTER),
            ("Which models?", "weak" + SPACE + ENTER),
            ("Which items?", ESCAPE),
            ("all 2 selected models", SPACE + ENTER),
            ("Which items?", ENTER),
            ("Under which experiment?", DOWN + ENTER),
            ("How many items", "x" + ENTER),
            ("A whole number", "\x7f7" + ENTER),
            ("US dollars", "1.5" + ENTER),
            ("Start it?", UP + ENTER),
        )

        assert terminal.end() == 0
        assert "evals run -e no_guidelines --max-samples 7 --budget 1.5\n" in terminal.everything


def test_a_filter_that_no_line_fits_chooses_nothing(project: Path) -> None:
    with in_terminal(project, "evals") as terminal:
        choose(terminal, ("What do you want to do?", ENTER), ("Which models?", "nobody" + ENTER))
        choose(terminal, ("/ nobody", "\x7f" * 6), ("Which models?", "strong"))
        choose(terminal, ("/ strong", SPACE + ENTER), ("Which items?", CTRL_C))

        assert terminal.end() == 130
        assert "[demo/strong" in terminal.everything


@pytest.mark.slow
@pytest.mark.parametrize(
    ("action", "keys", "command"),
    [
        (DOWN, "", "evals run --failed -m demo/strong -e default"),
        (DOWN * 2, ENTER, "evals run --resume unasked0"),
        (DOWN * 2, DOWN + ENTER, "evals fix unlucky0"),
    ],
)
def test_earlier_runs_are_gone_on_with(project: Path, action: str, keys: str, command: str) -> None:
    with in_terminal(project, "evals") as terminal:
        choose(terminal, ("What do you want to do?", action + ENTER))
        if keys:
            choose(terminal, ("Which run?", keys))
        choose(terminal, (f"{command}\n", ""), ("Start it?", UP + ENTER))

        assert terminal.end() == 0


def test_what_was_journalled_since_is_run_again_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_in(tmp_path)
    seen = [Sighting(model=a_model(), selected=True, seen_at=NOON)]
    journal = a_journal(settings.data, a_run())
    journal.write_whole(SIGHTINGS, "20250101T120000.0", records=seen)
    Warehouse(settings.database, journal).publish()
    later = NOON + timedelta(hours=1)
    a_journal(settings.data, a_run("later", "demo/weak", opened_at=later))
    answers, started = iter([menu.AGAIN, menu.YES, menu.QUIT]), list[list[str]]()
    monkeypatch.setattr(menu, "pick", lambda *_, **__: next(answers))
    monkeypatch.setattr(sys, "argv", ["evals"])
    monkeypatch.chdir(tmp_path)

    menu.menu(lambda words, prog_name: started.append(words))  # type: ignore[arg-type]

    assert started == [["run", "--failed", "-m", "demo/weak", "-e", "default"]]


@pytest.mark.parametrize(("key", "ends_with"), [(CTRL_C, 130), (ESCAPE, 130), (UP + ENTER, 0)])
def test_the_menu_can_be_left(project: Path, key: str, ends_with: int) -> None:
    with in_terminal(project, "evals") as terminal:
        choose(terminal, ("quit", key))

        assert terminal.end() == ends_with
        assert "Traceback" not in terminal.everything


def test_what_can_not_be_done_is_told_and_the_menu_asks_again(tmp_path: Path) -> None:
    settings_in(tmp_path)

    with in_terminal(tmp_path, "evals") as terminal:
        choose(terminal, ("What do you want to do?", DOWN + ENTER))

        terminal.wait_for("there are none yet: evals run")
        terminal.press(CTRL_C)
        assert terminal.end() == 130


def test_in_a_pipe_there_is_no_menu_but_the_help(project: Path) -> None:
    done = run(project, "evals")

    assert done.returncode == 2
    assert "Usage: evals" in done.stdout
    assert done.stderr == ""
