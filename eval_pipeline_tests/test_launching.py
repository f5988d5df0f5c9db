"""`evals run` and `evals fix`: which models and items they mean, and how they end."""

import json
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import dagster as dg
import duckdb
import pytest

from eval_pipeline.benchmark import load_benchmark
from eval_pipeline.providers.demo.faults import Faults
from eval_pipeline.providers.demo.server import DemoGateway
from eval_pipeline.settings import Settings
from eval_pipeline_tests.builders import settings_in
from eval_pipeline_tests.project import ROOT, call
from eval_pipeline_tests.test_crash import SAMPLE

AVERAGE, STRONG, WEAK = "demo/average", "demo/strong", "demo/weak"
FEW = 3


class Place:
    """A project in a folder of its own, at a gateway of its own."""

    def __init__(self, settings: Settings, gateway: DemoGateway) -> None:
        self.settings = settings
        self.gateway = gateway

    def evals(self, command: str) -> CompletedProcess[str]:
        return call(self.settings.root, f"evals {command}")

    def told(self, command: str) -> Any:
        """What the command says to programs."""
        return json.loads(self.evals(f"{command} --json").stdout)

    def asked(self, command: str) -> dict[str, int]:
        """How many questions each model was asked by the command, judges not counted."""
        self.gateway.requests.clear()
        done = self.evals(command)
        assert done.returncode in (0, 1), done.stderr
        return {model: n for model, n in self.gateway.requests.items() if model != "demo/judge"}

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.settings.database), read_only=True) as db:
            return db.sql(text).fetchall()

    def dagster(self) -> dg.DagsterInstance:
        with chdir(self.settings.root):
            return dg.DagsterInstance.from_config(".")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    sample = load_benchmark(settings_in(tmp_path, suites=[{"name": "sample", "path": SAMPLE}]))
    with DemoGateway(tuple(sample.items.values())) as gateway:
        folder = tmp_path / "project"
        folder.mkdir()
        (folder / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
        settings = settings_in(
            folder,
            suites=[{"name": "sample", "path": SAMPLE}],
            gateways=[{"name": "demo", "kind": "demo", "base_url": gateway.base_url}],
            selection={"exclude_models": ["demo/judge"]},
            plan={"max_samples": FEW},
            requests={"attempts": 1},
            automation={"preflight": False},
        )
        yield Place(settings, gateway)


def test_only_the_named_models_are_asked_and_the_others_stay_partitions(place: Place) -> None:
    asked = place.asked("run -m average -m weak")

    with place.dagster() as instance:
        partitions = instance.get_dynamic_partitions("models")
        materialized = instance.get_materialized_partitions(dg.AssetKey("predictions"))
    assert asked == {AVERAGE: FEW, WEAK: FEW}
    assert set(partitions) == {AVERAGE, STRONG, WEAK}
    assert materialized == {AVERAGE, WEAK}


def test_a_model_that_is_not_selected_can_be_named_all_the_same(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELS", STRONG)

    asked = place.asked("run -m weak")

    with place.dagster() as instance:
        partitions = instance.get_dynamic_partitions("models")
    assert asked == {WEAK: FEW}
    assert set(partitions) == {STRONG, WEAK}


@pytest.mark.parametrize(
    ("options", "models"),
    [
        ("--exclude-model strong", {AVERAGE, WEAK}),
        ("-m demo/* --exclude-model average --exclude-model weak", {STRONG}),
    ],
)
def test_models_can_be_left_out(place: Place, options: str, models: set[str]) -> None:
    assert place.asked(f"run {options}").keys() == models


@pytest.mark.parametrize(
    ("options", "items"),
    [
        ("-s sample", FEW),
        ("-c Math", FEW),
        ("-c Math -c Linguistics", FEW),
        ("-f /math-0[12]$", 2),
        ("--max-samples 2", 2),
        ("--max-samples 2 --samples 2", 4),
    ],
)
def test_items_can_be_chosen(place: Place, options: str, items: int) -> None:
    done = place.told(f"run -m weak {options}")

    (run,) = done["runs"]
    scopes = place.sql("select scope from runs")
    assert done["ended"] == "done"
    assert run["planned"] == run["judged"] == items
    assert scopes == [("filtered",)]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("run -m nobody", "No model matches 'nobody'"),
        ("run --exclude-model nobody", "No model matches 'nobody'"),
        ("run --exclude-provider nobody", "No provider matches 'nobody'"),
        ("run -s nowhere", "There is no suite 'nowhere'"),
        ("run -c Maths", "There is no category 'Maths'; closest: Math"),
        ("run -f no-such-item", "No item passes the filter"),
        ("run -f (", "must be a regular expression"),
        ("run -e nothing", "must be one of: default"),
        ("run --budget -1", "budget"),
        ("run --resume 12345678", "There is no run '12345678'"),
        ("run --failed --fresh", "leave out --fresh"),
        ("run --resume latest -c Math", "leave out what chooses"),
        ("run --max-samples 0", "max-samples"),
        ("run --nonsense", "No such option"),
        ("fix 12345678", "There is no run '12345678'"),
        ("nonsense", "No such command"),
    ],
)
def test_wrong_use_is_told_in_a_sentence_and_asks_nobody(
    place: Place, command: str, said: str
) -> None:
    done = place.evals(command)

    assert done.returncode == 2
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr
    assert not place.gateway.requests


def test_what_failed_in_the_latest_run_is_asked_anew_in_a_run_of_its_own(place: Place) -> None:
    place.evals("run -m weak --max-samples 20")
    ((first, wrong),) = place.sql(
        "select run_id, planned - correct from metrics where slice = 'all'"
    )

    asked = place.asked("run --failed -m weak --max-samples 20")

    ((second, planned),) = place.sql(f"select run_id, planned from runs where run_id <> '{first}'")
    assert asked == {WEAK: wrong} == {WEAK: planned}
    assert 0 < wrong < 20
    items = "select item_id from plans where run_id = '{}'"
    failed = f"select item_id from judged where run_id = '{first}' and score < 1"
    assert set(place.sql(items.format(second))) == set(place.sql(failed))


def test_where_nothing_failed_there_is_nothing_to_ask_anew(place: Place) -> None:
    place.evals("run -m strong")
    ((right,), *_) = place.sql("select item_id from judged where score = 1")
    place.evals(f"run -m strong -f /{right}$")

    done = place.evals("run --failed -m strong")

    assert done.returncode == 0
    assert "demo/strong: nothing failed in run" in done.stderr
    assert len(place.sql("select * from runs")) == 2


def test_a_model_without_a_run_has_nothing_that_failed(place: Place) -> None:
    done = place.evals("run --failed -m strong")

    assert done.returncode == 1
    assert "demo/strong has no run under 'default' yet" in done.stderr


def test_a_spent_budget_ends_with_3_and_the_run_is_resumed_with_a_larger_one(place: Place) -> None:
    spent = place.evals("run -m strong --max-samples 30 --budget 0.003 --num-workers 1")
    (before,) = place.sql("select count(*) from predictions")[0]

    done = place.told("run --resume latest --budget 10")

    assert spent.returncode == 3
    assert "The budget is reached. To go on with a larger one: evals run --resume" in spent.stderr
    assert 0 < before < 30
    (run,) = done["runs"]
    assert (done["ended"], run["answered"], run["judged"]) == ("done", 30, 30)
    assert place.gateway.requests[STRONG] == 30


def test_without_judging_answers_wait_for_their_verdicts(place: Place) -> None:
    asked = place.told("run -m weak --no-judge")
    judged = place.told("fix --judge")

    assert [run["judged"] for run in asked["runs"]] == [0]
    assert asked["ended"] == judged["ended"] == "done"
    assert place.gateway.requests[WEAK] == FEW
    assert place.sql("select count(score) from judged") == [(FEW,)]


def test_what_failed_is_told_and_fixed_in_the_same_run(place: Place) -> None:
    place.gateway.misbehave(Faults(server_error=1.0))
    broken = place.evals("run -m weak -c Math")
    place.gateway.misbehave(Faults())
    place.gateway.requests.clear()

    fixed = place.told("fix")

    (run,) = fixed["runs"]
    assert broken.returncode == 1
    assert f"To try that again: evals fix {run['run_id'][:8]}" in broken.stderr
    assert (fixed["ended"], run["answered"], run["failed"], run["judged"]) == ("done", FEW, 0, FEW)
    assert place.gateway.requests[WEAK] == FEW
    assert place.sql("select count(*) from runs") == [(1,)]
    assert "nothing to fix" in place.evals("fix").stdout


def test_asking_again_can_be_had_without_judging(place: Place) -> None:
    place.evals("run -m weak --no-judge")
    place.gateway.requests.clear()

    place.evals("fix latest --evaluation")

    assert not place.gateway.requests
    assert place.sql("select count(*) from judged") == [(0,)]


def test_dagster_s_history_tells_what_was_typed(place: Place) -> None:
    place.evals("run -m weak -c Math")

    with place.dagster() as instance:
        commands = {run.tags["evals/command"] for run in instance.get_runs()}
    assert commands == {"evals run -m weak -c Math"}


def test_a_fault_of_ours_is_told_in_a_sentence_unless_asked_for_more(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("seven is not eight")

    monkeypatch.setattr("eval_pipeline.cli.launches.list_jobs", broken)

    done = place.evals("job")
    with pytest.raises(ZeroDivisionError):
        place.evals("--debug job")

    assert done.returncode == 1
    assert done.stderr.startswith("ZeroDivisionError: seven is not eight")
    assert "Traceback" not in done.stderr
