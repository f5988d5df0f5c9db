"""`evals run` and `evals fix`: which models and items they mean, and how they end."""

import json
import shutil
import sys
import tomllib
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import dagster as dg
import duckdb
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from eval_pipeline.cli.output import print_json
from eval_pipeline.definitions import build_definitions
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import load_benchmark
from eval_pipeline_tests.builders import settings_in
from eval_pipeline_tests.project import ROOT, call
from eval_pipeline_tests.test_crash import SAMPLE

AVERAGE, STRONG, WEAK = "demo/average", "demo/strong", "demo/weak"
FEW = 3
FAILING = "run -m weak -c Math"


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


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoGateway]:
    """One for all tests: what is copied knows its address."""
    folder = tmp_path_factory.mktemp("items")
    sample = load_benchmark(settings_in(folder, suites=[{"name": "sample", "path": SAMPLE}]))
    with DemoGateway(tuple(sample.items.values())) as gateway:
        yield gateway


def place_in(folder: Path, gateway: DemoGateway) -> Place:
    settings = settings_in(
        folder,
        suites=[{"name": "sample", "path": SAMPLE}],
        gateways=[{"name": "demo", "kind": "demo", "base_url": gateway.base_url}],
        selection={"exclude_models": ["demo/judge"]},
        plan={"max_samples": FEW},
        requests={"attempts": 1},
        automation={"preflight": False},
    )
    return Place(settings, gateway)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, gateway: DemoGateway) -> Place:
    """Where Dagster's history is begun, which takes as long as a small run."""
    folder = tmp_path_factory.mktemp("template")
    (folder / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    place = place_in(folder, gateway)
    place.evals("job refresh_catalog")
    return place


@pytest.fixture(scope="module")
def failed_template(template: Place, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Where demo/weak was asked in vain."""
    place = copied(template, tmp_path_factory.mktemp("failed"))
    place.gateway.misbehave(Faults(server_error=1.0))
    place.evals(FAILING)
    place.gateway.misbehave(Faults())
    return place


def copied(place: Place, folder: Path) -> Place:
    shutil.copytree(place.settings.root, folder, dirs_exist_ok=True)
    place.gateway.requests.clear()
    return place_in(folder, place.gateway)


@pytest.fixture
def place(template: Place, tmp_path: Path) -> Iterator[Place]:
    yield copied(template, tmp_path / "project")
    template.gateway.misbehave(Faults())


@pytest.fixture
def failed(failed_template: Place, tmp_path: Path) -> Place:
    """A place where demo/weak was asked in vain."""
    return copied(failed_template, tmp_path / "project")


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
    plan = place.told(f"run {options} --dry-run")

    assert {one["model"] for one in plan["models"]} == models


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
    plan = place.told(f"run -m weak {options} --dry-run")

    assert [one["planned"] for one in plan["models"]] == [items]


@pytest.mark.parametrize(("options", "items"), [("-c Math --samples 2", 2 * FEW)])
def test_a_run_of_some_items_is_told_as_such(place: Place, options: str, items: int) -> None:
    done = place.told(f"run -m weak {options}")

    (run,) = done["runs"]
    scopes = place.sql("select scope from runs")
    assert done["ended"] == "done"
    assert run["planned"] == run["judged"] == items
    assert done["advice"].endswith(f": evals metrics {run['run_id'][:8]}")
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
        ("run -f (", "'--filter': must be a regular expression"),
        ("run -e nothing", "'--experiment': There is no experiment 'nothing'"),
        ("run --budget -1", "'--budget': Input should be greater than 0"),
        ("run --budget nan", "'--budget': Input should be a finite number"),
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


@pytest.mark.parametrize(
    ("command", "document"),
    [
        ("run --nonsense", {"ended": "wrong use", "error": "No such option: --nonsense"}),
        (
            "run --failed --fresh",
            {"ended": "wrong use", "error": "--failed asks anew already: leave out --fresh."},
        ),
    ],
)
def test_wrong_use_is_told_to_programs_too(
    place: Place, command: str, document: dict[str, str]
) -> None:
    done = place.evals(f"{command} --json")

    assert done.returncode == 2
    assert json.loads(done.stdout) == document
    assert done.stderr == f"{document['error']}\n"


def test_programs_are_told_once_also_if_something_fails_afterwards(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half_broken(*, as_json: bool) -> None:
        print_json({"as_json": as_json})
        raise OSError("the disk is gone")

    monkeypatch.setattr("eval_pipeline.cli.launch.list_jobs", half_broken)

    done = place.evals("job --json")

    assert done.returncode == 1
    assert json.loads(done.stdout) == {"as_json": True}
    assert done.stderr == "the disk is gone\n"


def test_what_is_wrong_is_told_before_dagster_is_loaded(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "eval_pipeline.cli.launch", None)

    wrong = [place.evals(f"run {one}") for one in ("-f (", "--budget 0", "-e x", "-s x")]
    monkeypatch.setenv("MAX_SAMPLES", "many")
    wrong.append(place.evals("run"))

    assert [done.returncode for done in wrong] == [2] * 5, wrong


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_spent_budget_ends_with_3_and_the_run_is_resumed_with_a_larger_one(place: Place) -> None:
    spent = place.evals("run -m strong --max-samples 30 --budget 0.003 --num-workers 1")
    (before,) = place.sql("select count(*) from predictions")[0]

    done = place.told("run --resume latest --budget 10")

    assert spent.returncode == 3
    assert "The budget is reached. To go on with a larger one: evals run --resume" in spent.stderr
    assert "every_planned_item_is_predicted" not in spent.stderr
    assert 0 < before < 30
    (run,) = done["runs"]
    assert (done["ended"], run["answered"], run["judged"]) == ("done", 30, 30)
    assert place.gateway.requests[STRONG] == 30


@pytest.mark.slow
def test_without_judging_answers_wait_for_their_verdicts(place: Place) -> None:
    asked = place.told("run -m weak --no-judge")
    judged = place.told("fix --judge")

    assert [run["judged"] for run in asked["runs"]] == [0]
    assert [run["judged"] for run in judged["runs"]] == [FEW]
    assert asked["ended"] == judged["ended"] == "done"
    assert asked["advice"].endswith(f": evals fix {asked['runs'][0]['run_id'][:8]} --judge")
    assert place.gateway.requests[WEAK] == FEW
    assert place.sql("select count(score) from judged") == [(FEW,)]


@pytest.mark.slow
def test_judging_that_stopped_names_the_run_and_how_to_go_on_with_it(place: Place) -> None:
    run = place.told("run -m weak --no-judge")["runs"][0]["run_id"][:8]
    place.gateway.misbehave(Faults(status={"demo/judge": 500}))
    outage = place.told("run -m weak")
    place.gateway.misbehave(Faults(cost_usd=0.6))

    spent = place.told(f"fix {run} --judge --budget 0.5")
    done = place.told(f"fix {run} --judge --budget 10")

    assert [one["runs"][0]["run_id"][:8] for one in (outage, spent, done)] == 3 * [run]
    assert outage["advice"] == f"Some of it failed. To try that again: evals fix {run}"
    assert spent["advice"].endswith(f"a larger one: evals fix {run} --judge --budget USD")
    assert [one["ended"] for one in (outage, spent, done)] == ["failed", "budget", "done"]


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


def test_what_would_fail_again_is_shown_and_not_to_be_repeated(place: Place) -> None:
    place.gateway.misbehave(Faults(status={WEAK: 400}))

    done = place.told("run -m weak")

    (run,) = done["runs"]
    assert done["ended"] == "failed"
    assert done["advice"].startswith("Some of it failed, and would fail again (HTTP 400: ")
    assert done["advice"].endswith(f": evals status {run['run_id'][:8]} --failed")


@pytest.mark.slow
def test_a_run_that_lacks_nothing_is_done_whatever_another_lacks(failed: Place) -> None:
    whole = failed.told("run --resume latest")["runs"][0]["run_id"]
    failed.gateway.misbehave(Faults(server_error=1.0))
    failed.evals("run -m weak -c Physics")
    failed.gateway.misbehave(Faults())

    done = failed.evals(f"fix {whole[:8]}")

    assert done.returncode == 0, done.stderr
    assert "Something is missing in other runs: evals status" in done.stdout


@pytest.mark.slow
def test_what_is_missing_is_told_of_the_run_that_was_to_be_fixed(failed: Place) -> None:
    ((older,),) = failed.sql("select run_id from runs")
    failed.gateway.misbehave(Faults(server_error=1.0))
    failed.evals("run -m weak -c Physics --max-samples 2 --no-judge")

    done = failed.told(f"fix {older[:8]} --evaluation")
    failed.gateway.misbehave(Faults())

    assert done["failures"] == [
        f"The check every_planned_item_is_predicted failed: {FEW} planned replies are missing: "
        f"{WEAK} (run {older[:8]})."
    ]


@pytest.mark.slow
def test_asking_again_can_be_had_without_judging(place: Place) -> None:
    place.evals("run -m weak --no-judge")
    place.gateway.requests.clear()

    place.evals("fix latest --evaluation")

    assert not place.gateway.requests
    assert place.sql("select count(*) from judged") == [(0,)]


def test_dagster_s_history_tells_what_was_typed(failed: Place) -> None:
    with failed.dagster() as instance:
        commands = {run.tags["evals/command"] for run in instance.get_runs()}
    assert commands == {"evals job refresh_catalog", f"evals {FAILING}"}


def test_a_fault_of_ours_is_told_in_a_sentence_unless_asked_for_more(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*, as_json: bool) -> None:
        raise ZeroDivisionError(f"seven is not eight: {as_json}")

    monkeypatch.setattr("eval_pipeline.cli.launch.list_jobs", broken)

    done = place.evals("job")
    more = place.evals("--debug job")

    assert done.returncode == more.returncode == 1
    assert done.stderr.startswith("ZeroDivisionError: seven is not eight")
    assert "Traceback" not in done.stderr
    assert more.stderr.startswith("Traceback")
    assert more.stderr.endswith("\nZeroDivisionError: seven is not eight: False\n")


def test_who_asks_for_more_is_told_by_the_same_exit_code_that_it_was_wrong_use(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALS_DEBUG", "1")

    done = place.evals("fix 12345678")

    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert "There is no run '12345678'" in done.stderr


@pytest.mark.slow
def test_a_model_that_was_only_named_is_not_due(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELS", STRONG)
    place.evals("run -m weak")

    due = {one["model"]: one["due"] for one in place.told("due")}

    assert due == {STRONG: True, WEAK: False}


@pytest.mark.slow
def test_models_that_are_no_neighbours_are_as_fresh_as_others(place: Place) -> None:
    place.evals("run -m average -m weak")

    with place.dagster() as instance:
        graph = build_definitions(place.settings).resolve_asset_graph()
        stale = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
        status = {
            model: stale.get_status(dg.AssetKey("predictions"), model)
            for model in (AVERAGE, STRONG, WEAK)
        }
    assert status == {
        AVERAGE: StaleStatus.FRESH,
        STRONG: StaleStatus.MISSING,
        WEAK: StaleStatus.FRESH,
    }


def test_a_refresh_leaves_the_partitions_that_somebody_is_at_work_on(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.evals("job refresh_catalog")
    busy = dg.DagsterRun(
        "evaluate", status=dg.DagsterRunStatus.STARTED, tags={"evals/models": f"{AVERAGE},{WEAK}"}
    )
    with place.dagster() as instance:
        instance.add_run(busy)
    monkeypatch.setenv("MODELS", STRONG)

    place.evals("job refresh_catalog")

    with place.dagster() as instance:
        partitions = instance.get_dynamic_partitions("models")
        instance.report_run_canceled(busy)
        place.evals("job refresh_catalog")
        afterwards = instance.get_dynamic_partitions("models")
    assert set(partitions) == {AVERAGE, STRONG, WEAK}
    assert afterwards == [STRONG]


@pytest.mark.slow
def test_a_run_goes_on_with_its_own_items_whatever_the_settings_choose(
    failed: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_FILTER", "nothing at all")

    done = failed.told("run --resume latest")

    (run,) = done["runs"]
    assert (done["ended"], run["planned"], run["judged"]) == ("done", FEW, FEW)


@pytest.mark.slow
def test_a_run_without_code_goes_on_beside_suites_of_code(failed: Place) -> None:
    suites = [
        {"name": "sample", "path": SAMPLE},
        {"name": "coding", "kind": "coding", "path": ROOT / "evals", "toolchain": "python"},
    ]
    settings_in(failed.settings.root, **{**vars_of(failed.settings), "suites": suites})

    done = failed.told("run --resume latest")

    (run,) = done["runs"]
    assert (done["ended"], run["judged"], done["failures"]) == ("done", FEW, [])


def test_what_was_begun_in_another_way_is_not_gone_on_with(failed: Place) -> None:
    experiments = {"default": {"temperature": 0.7}}
    settings_in(failed.settings.root, **vars_of(failed.settings), experiments=experiments)

    done = failed.evals("run --resume latest")

    assert done.returncode == 1
    assert "with another temperature than now" in done.stderr


@pytest.mark.slow
def test_a_run_that_nobody_has_published_is_found(place: Place, tmp_path: Path) -> None:
    place.evals("run -m weak --no-judge")
    copied = shutil.copy(place.settings.database, tmp_path / "before.duckdb")
    second = place.told("run -m strong --no-judge")["runs"][0]["run_id"]
    shutil.copy(copied, place.settings.database)

    done = place.told(f"run --resume {second[:8]}")

    assert [run["model"] for run in done["runs"]] == [STRONG]
    assert done["runs"][0]["judged"] == FEW


@pytest.mark.slow
def test_runs_of_several_launches_are_fixed_together(failed: Place) -> None:
    failed.gateway.misbehave(Faults(server_error=1.0))
    failed.evals("run -m average")
    failed.gateway.misbehave(Faults())
    with failed.dagster() as instance:
        before = len(instance.get_runs())

    done = failed.told("fix")

    with failed.dagster() as instance:
        launched = len(instance.get_runs()) - before
    assert {run["model"]: run["judged"] for run in done["runs"]} == {AVERAGE: FEW, WEAK: FEW}
    assert len({run["run_id"] for run in done["runs"]}) == 2
    assert launched == 2  # the inputs, then all stages


@pytest.mark.slow
def test_what_failed_is_gone_on_with_if_asking_it_anew_was_interrupted(place: Place) -> None:
    place.evals("run -m weak --max-samples 20")
    place.evals("run -m weak --failed --max-samples 20 --budget 0.0001 --num-workers 1")
    place.gateway.requests.clear()

    done = place.told("run -m weak --failed --max-samples 20 --budget 10")

    (run,) = done["runs"]
    assert len(place.sql("select * from runs")) == 2
    assert 0 < place.gateway.requests[WEAK] < run["planned"] == run["answered"]


def test_where_nobody_can_be_asked_it_does_not_end_as_if_all_were_well(place: Place) -> None:
    done = place.evals("run -m weak -e web_search")

    assert done.returncode == 1
    assert "its gateway lists no web search" in done.stderr
    assert done.stderr.endswith("Nobody could be asked.\n")


def test_a_folder_that_can_not_be_made_is_told_before_anybody_is_asked(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.settings.root / "taken").write_text("a file")
    monkeypatch.setenv("OUTPUT_TEMPDIR", "taken")

    done = place.evals("run -m weak")

    assert done.returncode == 1
    assert "taken: File exists" in done.stderr
    assert not place.gateway.requests


def test_a_key_that_was_typed_by_mistake_is_not_in_the_history(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-typed-by-mistake")

    place.evals("run -m sk-typed-by-mistake")

    with place.dagster() as instance:
        commands = {run.tags["evals/command"] for run in instance.get_runs()}
    assert commands == {"evals job refresh_catalog", "evals run -m [OPENAI_API_KEY]"}


def vars_of(settings: Settings) -> dict[str, Any]:
    """What the project's settings file says, to be written again with changes."""
    return tomllib.loads((settings.root / "eval_pipeline.toml").read_text("utf-8"))
