"""Live progress as people see it: in a terminal of some size, in a pipe, and when it ends early."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline_tests.builders import a_question
from eval_pipeline_tests.project import call, run
from eval_pipeline_tests.terminal import CTRL_C, in_terminal
from eval_pipeline_tests.webserver import a_quick_project, change

QUESTIONS = [a_question(f"q{n:02}") for n in range(20)]
ESCAPE = "\x1b"
BARS = re.compile("[━╸╺]{4}")
A_PERSON_S = {"CI": ""}
"""The tests themselves may run where nobody looks on."""
# What a stage does, without Dagster: counts for two models until it is told to go on.
STAGE = """
import logging, sys, time
from pathlib import Path
from eval_pipeline.cli.progress import following
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.evaluation.progress import Stage, under_way
from eval_pipeline.evaluation.workers import StageProgress

log = logging.getLogger("eval_pipeline.evaluation")
tallies = [StageProgress("lab/" + name, "asked", planned=100) for name in ("one", "two")]
with following(as_json="--json" in sys.argv), under_way(lambda: Stage(tallies)):
    log.info("Begun with [red]two[/red]\\x1b[2J")
    print("For whoever reads stdout.")
    log.info("progress %s", "model=lab/one done=0")
    for tally in tallies:
        tally.outcomes[Outcome.OK] = 40
    while "--wait" in sys.argv and not Path("go").exists():
        time.sleep(0.02)
    if "--fail" in sys.argv:
        raise OSError("The disk is full.")
    try:
        time.sleep(100 if "--interrupt" in sys.argv else 0)
    except KeyboardInterrupt:
        log.info("Interrupted.")
print("The end.")
"""


@pytest.fixture
def stage(tmp_path: Path) -> str:
    """The command that does it."""
    (tmp_path / "stage.py").write_text(STAGE, "utf-8")
    return f"{sys.executable} stage.py"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """With a gateway that takes its time."""
    folder = a_quick_project(tmp_path_factory.mktemp("project"), QUESTIONS)
    with DemoGateway(QUESTIONS, faults=Faults(latency_s=0.2)) as gateway:
        settings = folder / "eval_pipeline.toml"
        change(settings, 'kind = "demo"', f'kind = "demo"\nbase_url = "{gateway.base_url}"')
        change(settings, "num_workers = 50", "num_workers = 2")
        yield folder


@pytest.mark.slow
def test_bars_move_while_models_are_asked_and_leave_nothing_behind(project: Path) -> None:
    with in_terminal(project, "evals run", A_PERSON_S, columns=100) as terminal:
        terminal.wait_for("asking 3 models, simulated")
        terminal.wait_for("━━━")
        first = [line for line in terminal.lines if BARS.search(line)]
        terminal.wait_for("judging 3 models by demo/judge, simulated")
        ended = terminal.end()

    assert ended == 0
    assert len(first) == 3
    assert all(re.search(r"demo/\w+ +[━╸╺]+ +\d+/20 ", line) for line in first)
    assert not BARS.search(terminal.everything.partition("How it went")[0])
    assert "progress model=" not in terminal.everything
    assert terminal.everything.count("20 of 20 asked (20 ok)") == 3


def test_in_a_pipe_there_are_lines_that_can_be_read_and_no_bars(project: Path) -> None:
    ran = call(project, "evals run --fresh -m demo/weak --no-judge")

    assert ran.returncode == 0
    assert ESCAPE not in ran.stderr + ran.stdout
    assert not BARS.search(ran.stderr)
    assert "demo/weak: 20 of 20 asked (20 ok)" in ran.stderr


def test_the_log_is_above_the_bars_and_stays_when_they_go(tmp_path: Path, stage: str) -> None:
    with in_terminal(tmp_path, f"{stage} --wait", A_PERSON_S) as terminal:
        terminal.wait_for("40/100")
        above = terminal.lines[:4]
        (tmp_path / "go").touch()
        ended = terminal.end()

    assert ended == 0
    assert {*above[:2]} == {"Begun with [red]two[/red]\ufffd[2J", "For whoever reads stdout."}
    assert above[2].startswith("asking 2 models · 80/200 40%")
    assert terminal.lines[:2] == above[:2]
    assert [line for line in terminal.lines[2:] if line] == ["The end."]


@pytest.mark.parametrize("columns", [60, 120])
def test_the_bars_follow_when_the_terminal_is_resized(
    tmp_path: Path, stage: str, columns: int
) -> None:
    with in_terminal(tmp_path, f"{stage} --wait", A_PERSON_S, columns=90) as terminal:
        terminal.wait_for("40/100")
        before = next(line for line in terminal.lines if line.startswith("lab/one"))
        terminal.resize(columns, 10)
        terminal.wait_for(before, gone=True)
        terminal.wait_for("lab/two")
        told = [line for line in terminal.lines if line.startswith("lab/")]

    assert all("40/100" in line for line in told)


def test_what_fails_leaves_how_far_each_model_came(tmp_path: Path, stage: str) -> None:
    with in_terminal(tmp_path, f"{stage} --fail", A_PERSON_S) as terminal:
        ended = terminal.end()

    assert ended == 1
    assert "stopped asking 2 models · 80/200 40%" in terminal.everything
    assert terminal.everything.count("cut short") == 2
    assert terminal.everything.rstrip().endswith("OSError: The disk is full.")


def test_a_key_that_the_terminal_shows_leaves_no_line_behind(tmp_path: Path, stage: str) -> None:
    with in_terminal(tmp_path, f"{stage} --interrupt", A_PERSON_S) as terminal:
        terminal.wait_for("40/100")
        terminal.press(CTRL_C)
        terminal.end()

    assert "asking" not in terminal.everything
    assert [line for line in terminal.lines if line][-2:] == ["Interrupted.", "The end."]


@pytest.mark.parametrize("how", ["", "--fail", "--interrupt"])
def test_however_it_ends_the_cursor_is_there_again(tmp_path: Path, stage: str, how: str) -> None:
    log = tmp_path / "seen"
    script = f"script -qfec '{stage} {how}' {log}"
    with in_terminal(tmp_path, script, A_PERSON_S) as terminal:
        if how == "--interrupt":
            terminal.wait_for("40/100")
            terminal.press(CTRL_C)
        terminal.end()

    seen = log.read_text("utf-8")
    assert 0 <= seen.rindex("\x1b[?25l") < seen.rindex("\x1b[?25h")


@pytest.mark.parametrize(
    ("given", "variables"),
    [
        ("", {"TERM": "dumb"}),
        ("", {"CI": "true"}),
        ("", {"TTY_INTERACTIVE": "0"}),
        ("--json", {}),
    ],
)
def test_where_nobody_wants_bars_there_are_none(
    tmp_path: Path, stage: str, given: str, variables: dict[str, str]
) -> None:
    log = tmp_path / "seen"
    said = {"TERM": "xterm", **A_PERSON_S, **variables}
    words = " ".join(f"{name}={value}" for name, value in said.items())

    with in_terminal(tmp_path, f"script -qfec 'env {words} {stage} {given}' {log}") as terminal:
        terminal.end()

    seen = log.read_text("utf-8")
    assert ESCAPE not in seen
    assert "progress model=lab/one done=0" in seen
    assert "The end." in seen


def test_colours_can_be_switched_off(tmp_path: Path, stage: str) -> None:
    log = tmp_path / "seen"
    script = f"script -qfec 'env NO_COLOR=1 {stage} --fail' {log}"

    with in_terminal(tmp_path, script, A_PERSON_S) as terminal:
        terminal.end()

    seen = log.read_text("utf-8")
    assert BARS.search(seen)
    assert not re.search(r"\x1b\[[0-9;]*3[1-7]m", seen)


def test_what_goes_to_a_file_does_not_come_out_at_the_terminal(tmp_path: Path, stage: str) -> None:
    with in_terminal(tmp_path, f"sh -c '{stage} > out.txt'", A_PERSON_S) as terminal:
        terminal.end()

    assert (tmp_path / "out.txt").read_text() == "For whoever reads stdout.\nThe end.\n"
    assert terminal.everything.strip() == "Begun with [red]two[/red]\ufffd[2J"


def test_a_stage_in_a_pipe_says_the_same_in_lines(tmp_path: Path, stage: str) -> None:
    ran = run(tmp_path, stage, {"FORCE_COLOR": "1"})

    said = ["Begun with [red]two[/red]\ufffd[2J", "progress model=lab/one done=0"]
    assert ran.stderr.splitlines() == said
    assert ran.stdout.splitlines() == ["For whoever reads stdout.", "The end."]
