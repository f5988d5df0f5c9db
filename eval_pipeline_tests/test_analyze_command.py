"""`evals analyze`: what it writes and says, whom it asks, and how it ends."""

import json
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import dagster as dg
import pytest

from eval_pipeline.evaluation.catalog import look_up
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.gateways.demo.faults import NO_FAULTS, Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.journal.locks import hold_run_lock
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline_tests.builders import a_journal, a_judgement, settings_in
from eval_pipeline_tests.failing import EXAM, QUESTIONS, a_failed_exam, opened, replies
from eval_pipeline_tests.project import ROOT, call
from eval_pipeline_tests.stand import Stand
from eval_pipeline_tests.test_interrupting import QUESTIONS as MANY
from eval_pipeline_tests.test_interrupting import WORKERS, KeepsWaiting, wait_for

STRONG, WEAK, ANALYST = "demo/strong", "demo/weak", "demo/judge"
CLASSIFICATIONS = ("MODEL_FAULT", "OVERLY_STRICT", "AMBIGUOUS_TASK", "KNOWN_GAP")
# One dollar per request, so that what is spent can be counted.
DOLLAR = {"prices": {"prompt": 0.0, "completion": 0.0, "request": 1.0}}
SETTINGS: dict[str, Any] = {
    "questions": MANY,
    "automation": {"preflight": False},
    "requests": {"attempts": 1, "stop_after_failures": 2},
    "analysis": {"model": ANALYST},
    "overrides": {ANALYST: DOLLAR},
}


class Place:
    """A project in which two models were evaluated, at a gateway that counts."""

    def __init__(self, folder: Path, gateway: DemoGateway) -> None:
        self.folder, self.gateway = folder, gateway

    def evals(self, command: str) -> CompletedProcess[str]:
        return call(self.folder, f"evals {command}")

    def told(self, command: str) -> Any:
        return json.loads(self.evals(f"{command} --json").stdout)

    def asked(self) -> int:
        """How often the analyst was asked since the last time."""
        return self.gateway.requests.pop(ANALYST, 0)

    def reports(self) -> dict[str, bytes]:
        found = sorted((self.folder / "reports").glob("*/*/*_????-??-??.md"))
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}

    def wrong(self, run: str) -> list[str]:
        failures = self.told(f"failures {run}")["failures"]
        return [one["item_id"] for one in failures if one["went"] == "wrong"]


@pytest.fixture(scope="module")
def gateway() -> Iterator[DemoGateway]:
    with DemoGateway(MANY) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory, gateway: DemoGateway) -> Path:
    """The weak model's run is the older one."""
    folder = tmp_path_factory.mktemp("evaluated")
    (folder / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    stand = Stand(folder, gateway, **SETTINGS)
    assert call(folder, "evals job refresh_catalog").returncode == 0
    weak, strong, judge = look_up(stand.journal, (WEAK, STRONG, ANALYST))
    for number, model in enumerate((weak, strong)):
        stand.predict(model, launch=Launch(f"{number}2345678-run"))
    stand.judge(WEAK, STRONG, by=judge)
    Warehouse(stand.settings.database, stand.journal).publish()
    return folder


@pytest.fixture
def place(tmp_path: Path, evaluated: Path, gateway: DemoGateway) -> Place:
    gateway.misbehave(NO_FAULTS)
    gateway.requests.clear()
    return Place(shutil.copytree(evaluated, tmp_path / "project"), gateway)


def test_reports_are_written_once_and_nobody_is_asked_twice(place: Place) -> None:
    weak, strong = (place.told(f"failures latest -m {one}") for one in ("WEAK", STRONG))
    wrong = {one["run"]["run_id"]: one["totals"]["failed"]["wrong"] for one in (weak, strong)}

    done = place.evals("analyze")

    assert done.returncode == 0, done.stderr
    assert place.asked() == sum(wrong.values())
    written = place.reports()
    assert {path.rpartition("_")[0] for path in written} == {
        f"reports/{one['run']['model']}/{one['run']['run_id'][:8]}" for one in (weak, strong)
    }
    assert "Why items failed" in done.stdout
    assert all(str(place.folder / path) in done.stdout for path in written)

    again = place.told("analyze")

    assert (place.asked(), place.reports()) == (0, written)
    assert (again["ended"], again["passed_over"], again["failures"]) == ("done", [], [])
    assert {one["run_id"]: one["wrong"] for one in again["reports"]} == wrong
    assert {one["path"] for one in again["reports"]} == {
        str(place.folder / path) for path in written
    }
    for one in again["reports"]:
        assert sum(one[name] for name in CLASSIFICATIONS) == one["wrong"]
        assert one["unexplained"] == 0

    fresh = place.told("analyze latest --fresh")

    assert [one["model"] for one in fresh["reports"]] == [STRONG]
    assert place.asked() == wrong[strong["run"]["run_id"]]


def test_dagster_s_history_tells_what_was_typed_and_what_came_of_it(
    place: Place,
) -> None:
    done = place.evals("analyze latest -m weak")

    assert done.returncode == 0, done.stderr
    (path,) = place.reports()
    assert path.startswith(f"reports/{WEAK}/")
    with chdir(place.folder), dg.DagsterInstance.from_config(".") as instance:
        (run, *_) = instance.get_runs(limit=1)
        event = instance.get_latest_materialization_event(dg.AssetKey("run_reports"))
    assert run.tags["evals/command"] == "evals analyze latest -m weak"
    assert event is not None and event.run_id == run.run_id
    assert event.asset_materialization is not None
    metadata = event.asset_materialization.metadata
    numbers = {name: one.value for name, one in metadata.items() if isinstance(one.value, int)}
    wrong = len(place.wrong("latest -m weak"))
    assert (numbers["wrong"], numbers["reports"], numbers["unexplained"]) == (wrong, 1, 0)
    assert sum(numbers[name] for name in CLASSIFICATIONS) == wrong
    assert (numbers["launch_done"], metadata["launch_cost_usd"].value) == (wrong, wrong)


def test_the_job_does_the_same_for_the_latest_runs(place: Place) -> None:
    done = place.evals("job analyze")

    assert done.returncode == 0, done.stderr
    assert "Done. What was found out is in reports/" in done.stdout
    assert len(place.reports()) == 2


@pytest.mark.slow
def test_a_person_s_word_is_in_the_report_when_it_is_renewed(place: Place) -> None:
    place.evals("analyze latest")
    (item, *_), (before,) = place.wrong("latest"), place.reports().values()
    place.asked()

    said = place.evals(f"classify latest {item} AMBIGUOUS_TASK --note Unclear.")
    advised = said.stdout.splitlines()[-1].partition("does not say so yet: evals ")[2]
    renewed = place.evals(advised)

    assert (renewed.returncode, place.asked()) == (0, 0), renewed.stderr
    (after,) = place.reports().values()
    assert b"Set by people: 0;" in before and b"Set by people: 1;" in after
    assert b"Unclear." in after


@pytest.mark.slow
def test_what_people_edited_is_kept_beside_the_report_and_said(place: Place) -> None:
    (before,) = place.told("analyze latest")["reports"]
    path, item = Path(before["path"]), place.wrong("latest")[0]
    heading = next(line for line in path.read_text().splitlines() if line.endswith(f"/{item}"))
    path.write_text(path.read_text().replace(heading, f"{heading}\n\nI looked."))

    said = place.evals("analyze latest").stdout
    (after,) = place.told("analyze latest")["reports"]

    copy = path.with_name(f"{path.name}.bak")
    assert (before["kept"], after["kept"]) == ([], [str(copy)])
    assert "I looked." in copy.read_text() and "I looked." not in path.read_text()
    assert f"{path}\nedited by hand, and kept as {copy}\n" in said


def test_the_report_on_a_run_that_is_deleted_stays(place: Place) -> None:
    place.evals("analyze latest")
    written = place.reports()

    done = place.evals("delete latest --yes")

    (path,) = written
    assert f"The report {place.folder / path} is left where it is." in done.stdout
    assert place.reports() == written


@pytest.mark.slow
def test_in_an_outage_of_the_analyst_nothing_is_written_and_then_it_goes_on(place: Place) -> None:
    place.gateway.misbehave(Faults(status={ANALYST: 500}))

    failed = place.told("analyze latest")
    nothing = place.reports()
    place.gateway.misbehave(NO_FAULTS)
    place.asked()
    done = place.evals("analyze latest")

    (told,) = failed["reports"]
    assert (failed["ended"], told["path"], nothing) == ("failed", None, {})
    assert told["unexplained"] == told["wrong"]
    assert "items in a row had no answer" in failed["failures"][0]
    assert (done.returncode, place.asked()) == (0, told["wrong"])


def test_an_analyst_who_does_not_get_to_the_end_has_explained_nothing(place: Place) -> None:
    short = {"model": ANALYST, "max_tokens": 5}
    Stand(place.folder, place.gateway, **{**SETTINGS, "analysis": short})

    done = place.evals("analyze latest")

    assert (done.returncode, place.reports()) == (1, {})
    assert "Some failures are not explained; the same command" in done.stderr
    assert "demo/strong: " in done.stderr


@pytest.mark.slow
def test_a_budget_stops_it_and_a_larger_one_goes_on(place: Place) -> None:
    wrong, judging = len(place.wrong("latest")), len(MANY)

    stopped = place.evals(f"analyze latest --budget {judging + 2}")
    paid = place.asked()
    done = place.evals(f"analyze latest --budget {judging + wrong}")

    assert (stopped.returncode, paid) == (3, 2), stopped.stderr
    assert "The budget is reached." in stopped.stderr
    assert (done.returncode, place.asked()) == (0, wrong - 2), done.stderr


@contextmanager
def ctrl_c_at(gateway: KeepsWaiting, log: pytest.LogCaptureFixture) -> Iterator[None]:
    """Pressed when all are waiting for the analyst, who goes on when it is heeded."""

    def press() -> None:
        try:
            wait_for(lambda: gateway.has_all_waiting)
            os.kill(os.getpid(), signal.SIGINT)
            wait_for(lambda: "Stopping: 4 items are under way" in log.text)
        finally:
            gateway.go_on.set()

    before, person = signal.getsignal(signal.SIGINT), threading.Thread(target=press)
    person.start()
    try:
        yield
    finally:
        person.join()
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_after_ctrl_c_what_was_explained_is_kept_and_the_rest_is_asked(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    wrong, own = len(place.wrong(f"{WEAK}@latest")), place.folder / "eval_pipeline.toml"
    with KeepsWaiting(MANY, ANALYST, before=1) as gateway:
        own.write_text(own.read_text().replace(place.gateway.base_url, gateway.base_url))
        with ctrl_c_at(gateway, caplog):
            stopped = place.evals("analyze latest -m weak")
        explained = gateway.requests.pop(ANALYST)
        done = place.evals("analyze latest -m weak")
        rest = gateway.requests[ANALYST]

    assert (stopped.returncode, explained) == (130, 1 + WORKERS), stopped.stderr
    assert "Stopped. What is explained is kept; the same command" in stopped.stderr
    assert (done.returncode, rest) == (0, wrong - explained), done.stderr
    assert rest > 0


LOST, UNJUDGED, UNASKED, HALF = "22222222-a", "33333333-a", "44444444-a", "55555555-a"


@pytest.fixture(scope="module")
def exam(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The failed exam, and runs in which nothing is wrong yet."""
    folder = a_failed_exam(tmp_path_factory.mktemp("failed"))
    lost, unjudged, unasked, half = (
        opened(run_id, WEAK, hour) for hour, run_id in enumerate((LOST, UNJUDGED, UNASKED, HALF), 1)
    )
    outage = {"outcome": "timeout", "answer": None, "error": "Too late"}
    right, *others = replies(half)
    failed = [one.model_copy(update=outage) for one in (*replies(lost), *others)]
    runs = (lost, unjudged, unasked, half)
    answered = (*replies(unjudged), right)
    a_journal(folder / "data", *runs, *failed, *answered, a_judgement(right), benchmark=EXAM)
    return folder


NOTHING = [
    ("demo/perfect@1111", 0, "demo/perfect, run 11111111: nothing is wrong among 5 judged"),
    ("2222", 1, "no reply came, which says nothing about the model. To ask again: evals fix 222"),
    ("3333", 1, "demo/weak, run 33333333 is not judged yet: evals fix 33333333 --judge"),
    ("4444", 1, "no item was asked yet. To continue: evals run --resume 44444444"),
    ("5555", 1, "nothing is wrong among 1 judged replies. 4 failed on the way, which says"),
    ("9999", 2, "There is no run '9999'; the latest are 55555555, 44444444"),
    ("latest -m nobody", 2, "There is no run of a model 'nobody'"),
    ("1111 -m weak", 2, "There is no model 'weak' in run 11111111; there are, for example: demo/p"),
    ("latest -m strong", 2, "Nobody looks into failures: name a model under [analysis] in"),
]


@pytest.mark.parametrize(("words", "how", "sentence"), NOTHING)
def test_where_nothing_can_be_analysed_that_is_said_and_nothing_written(
    exam: Path, words: str, how: int, sentence: str
) -> None:
    done = call(exam, f"evals analyze {words}")

    assert done.returncode == how
    assert sentence in (done.stderr if how else done.stdout)
    assert not (exam / "reports").exists()


def test_nothing_to_analyse_is_one_document_too(exam: Path) -> None:
    done = call(exam, "evals analyze 2222 --json")

    said = json.loads(done.stdout)
    assert (done.returncode, said["ended"], said["reports"]) == (1, "failed", [])
    assert "evals fix 22222222" in said["passed_over"][0]


def test_a_run_that_is_still_going_is_analysed_later(exam: Path) -> None:
    with hold_run_lock(exam / "data" / "journal", "11111111-a"):
        done = call(exam, f"evals analyze {STRONG}@1111")

    assert (done.returncode, done.stdout) == (1, "")
    assert "demo/strong, run 11111111 is still going: analyze it when it is done." in done.stderr


def test_an_analyst_whom_no_gateway_lists_is_told_of(exam: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(exam, tmp_path / "project")
    settings_in(folder, questions=QUESTIONS, analysis={"model": "demo/nobody"})

    done = call(folder, "evals analyze latest -m strong")

    assert done.returncode == 2
    assert "The model demo/nobody is in no gateway's list." in done.stderr


def test_where_there_are_no_runs_that_is_said(tmp_path: Path) -> None:
    settings_in(tmp_path)

    done = call(tmp_path, "evals analyze")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "There are no runs yet: evals run\n"
