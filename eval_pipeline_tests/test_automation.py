"""What follows by itself, tick by tick: once per change, and what costs money only if told so."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import dagster as dg
import pytest

from eval_pipeline.analysis.report.paths import NOTES
from eval_pipeline.defs.assets import build_graph
from eval_pipeline.defs.automation import RESULTS, SEES_TO_THE_REST, build_automation, condition
from eval_pipeline.defs.jobs import find_job
from eval_pipeline.defs.versions import VERSIONS
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import settings_in, write_questions
from eval_pipeline_tests.project import undrawn
from eval_pipeline_tests.test_pipeline import Graph

FOLLOWING = {"judged", *RESULTS}
JUDGING: dict[str, Any] = {"automation": {"judge": True}}


class Follower(Graph):
    """The graph, and a daemon that looks at its conditions when it is told to."""

    cursor: Any = None

    def tick(self) -> set[str]:
        """Which assets the daemon wants materialized now."""
        found = dg.evaluate_automation_conditions(
            build_graph(self.settings), self.instance, cursor=self.cursor
        )
        self.cursor = found.cursor
        keys = {
            result.key
            for result in found.results
            if isinstance(result.key, dg.AssetKey) and found.get_num_requested(result.key)
        }
        return {key.to_user_string() for key in keys}

    def ask(self, model: str, *more: str, **config: object) -> None:
        chosen = {"predictions": {"mode": "FRESH", **config}}
        assert self.run("predictions", *more, partition=model, config=chosen).success


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def a_follower(settings: Settings, instance: dg.DagsterInstance) -> Follower:
    """One that has looked before there was anything to follow."""
    follower = Follower(settings, instance, checked=False)
    follower.run("dataset", "model_catalog")
    assert follower.tick() == set()
    return follower


@pytest.fixture
def judging(tmp_path: Path, instance: dg.DagsterInstance) -> Follower:
    """One that may judge."""
    return a_follower(settings_in(tmp_path, **JUDGING), instance)


def test_verdicts_follow_the_answers_of_one_model_and_results_the_verdicts(
    judging: Follower,
) -> None:
    judging.ask("demo/strong")

    requested = judging.tick()

    assert requested == FOLLOWING
    assert judging.tick() == set()
    assert judging.run(*requested).success
    assert judging.tick() == set()
    assert judging.rows("select model, judged from leaderboard") == [("demo/strong", 3)]


def test_unless_the_settings_say_so_nothing_that_costs_money_is_started(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    follower = a_follower(settings_in(tmp_path), instance)

    follower.ask("demo/strong")
    after_answers = follower.tick()
    follower.run("judged")
    after_verdicts = follower.tick()

    assert after_answers == set()
    assert after_verdicts == {*RESULTS}
    assert follower.tick() == set()


def test_what_was_answered_before_the_first_look_with_a_setting_waits_for_the_next_answers(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    follower = a_follower(settings_in(tmp_path), instance)
    follower.settings = settings_in(tmp_path, **JUDGING)
    follower.ask("demo/strong")

    first_look = follower.tick()
    follower.ask("demo/weak")

    # docs/automation.md says to wait after changing it: should Dagster no longer need that, say so.
    assert (first_look, follower.tick()) == (set(), FOLLOWING)


@pytest.mark.parametrize(
    ("settings", "follows"),
    [
        ({}, False),
        ({"judge": {"rules": "first"}}, False),
        ({"judge": {"rules": "only"}}, True),
        ({"judge": {"rules": "only"}, "coding": {"reviewer": "demo/judge"}}, False),
        (JUDGING, True),
    ],
)
def test_judging_follows_if_it_is_allowed_or_costs_nothing(
    tmp_path: Path, settings: dict[str, Any], follows: bool
) -> None:
    assert (condition("judged", settings_in(tmp_path, **settings)) is not None) == follows


@pytest.mark.parametrize("settings", [{}, JUDGING, {"automation": {"evaluate": True}}])
def test_nobody_is_asked_for_answers_models_or_second_opinions(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    chosen = settings_in(tmp_path, **settings)

    asking = ("dataset", "model_catalog", "predictions", "judge_reliability", "run_reports")

    assert [condition(name, chosen) for name in asking] == [None] * len(asking)


@pytest.mark.slow
def test_failures_are_looked_into_by_the_run_that_judges_if_the_settings_say_so(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    allowed: dict[str, Any] = {"automation": {"judge": True, "analyse": True}}
    # Some of it has no answer, so that this run is at work on something incomplete.
    faults = Faults(server_error=0.3, models=("demo/weak",))
    with DemoGateway(questions := write_questions(tmp_path, 12), faults=faults) as gateway:
        settings = settings_in(
            tmp_path,
            questions=questions,
            gateways=[{"name": "demo", "kind": "demo", "base_url": gateway.base_url}],
            requests={"attempts": 1},
            analysis={"model": "demo/judge"},
            **allowed,
        )
        follower = a_follower(settings, instance)
        follower.ask("demo/weak")
        requested = follower.tick()
        result = follower.run(*requested)

    assert requested == {*FOLLOWING, "run_reports"}
    assert result.success
    (told,) = result.asset_materializations_for_node("run_reports")
    wrong = follower.rows("select count(*) from judged where score = 0")
    assert wrong == [(told.metadata["wrong"].value,)] != [(0,)]
    (_,) = (path for path in settings.reports.glob("demo/weak/*.md") if NOTES not in path.name)
    assert told.metadata["reports"].value == 1
    assert follower.tick() == set()


@pytest.mark.slow
def test_judging_that_failed_is_tried_again_when_there_are_new_answers(
    tmp_path: Path, gateway: DemoGateway, instance: dg.DagsterInstance
) -> None:
    demo = [{"name": "demo", "kind": "demo", "base_url": gateway.base_url}]
    follower = a_follower(settings_in(tmp_path, gateways=demo, **JUDGING), instance)
    follower.ask("demo/strong")
    gateway.misbehave(Faults(status={"demo/judge": 401}))

    failed = follower.run(*follower.tick())
    later = [follower.tick(), follower.tick()]
    follower.ask("demo/weak")

    assert not failed.success
    assert later == [set(), set()]
    assert follower.tick() == FOLLOWING


def test_what_a_run_does_itself_is_not_done_again(judging: Follower) -> None:
    judging.ask("demo/strong", *FOLLOWING)

    assert judging.tick() == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("allowed", "follows"),
    [({"judge": True}, set()), ({"judge": True, "analyse": True}, {"run_reports"})],
)
def test_what_a_job_does_itself_is_not_done_again(
    tmp_path: Path, instance: dg.DagsterInstance, allowed: dict[str, bool], follows: set[str]
) -> None:
    follower = a_follower(settings_in(tmp_path, automation=allowed), instance)
    job = find_job(follower.settings, "evaluate")

    with undrawn():
        result = job.execute_in_process(instance=instance, partition_key="demo/strong")

    assert result.success
    assert [follower.tick(), follower.tick()] == [follows, set()]


def test_the_jobs_that_see_to_the_rest_say_so(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)

    jobs = [find_job(settings, name) for name in ("evaluate", "fix_judge", "metrics_only")]

    assert all(SEES_TO_THE_REST in job.tags for job in jobs)


def test_answers_that_come_while_others_are_judged_are_judged_afterwards(
    judging: Follower,
) -> None:
    job = build_graph(judging.settings).resolve_implicit_global_asset_job_def()
    busy = judging.instance.create_run_for_job(
        job.get_subset(asset_selection={dg.AssetKey("judged")}),
        status=dg.DagsterRunStatus.STARTED,
        asset_selection=frozenset({dg.AssetKey("judged")}),
    )

    judging.ask("demo/strong")
    meanwhile = judging.tick()
    judging.instance.report_run_canceled(busy)

    assert meanwhile == set()
    assert judging.tick() == FOLLOWING


@pytest.mark.slow
def test_verdicts_by_hand_on_one_model_do_not_stand_for_those_on_another(
    judging: Follower,
) -> None:
    judging.ask("demo/strong")
    judging.ask("demo/weak", "judged")

    assert judging.tick() == FOLLOWING


def test_what_is_missing_is_computed_once_it_can_be(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    follower = Follower(settings_in(tmp_path), instance, checked=False)
    follower.run("dataset", "model_catalog")

    follower.ask("demo/strong", "judged")

    assert follower.tick() == {*RESULTS}
    assert follower.tick() == set()


@pytest.mark.slow
def test_a_new_query_is_computed_with_once_and_a_new_prompt_starts_nothing(
    judging: Follower, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judging.ask("demo/strong", *FOLLOWING)
    judging.tick()
    (tmp_path / "own.txt").write_text("Answer in verse.")
    own = {"default": {"system_prompt": "own.txt"}}
    judging.settings = settings_in(tmp_path, experiments=own, **JUDGING)
    after_prompt = judging.tick()

    monkeypatch.setitem(cast(dict[str, Any], VERSIONS), "metrics", 2)
    after_query = judging.tick()

    assert after_prompt == set()
    assert after_query == {*RESULTS}
    assert judging.tick() == set()


@pytest.mark.slow
def test_the_budget_bounds_what_judging_by_itself_costs(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    free = {"prices": {"prompt": 0.0, "completion": 0.0}}
    dear = {"prices": {"prompt": 0.0, "completion": 0.0, "request": 1.0}}
    settings = settings_in(
        tmp_path,
        questions=write_questions(tmp_path, 20),
        overrides={"demo/strong": free, "demo/judge": dear},
        budget={"usd_per_run": 5.0},
        judge={"num_workers": 1},
        **JUDGING,
    )
    follower = a_follower(settings, instance)
    follower.ask("demo/strong")

    result = follower.run(*follower.tick())

    assert result.success
    (told,) = result.asset_materializations_for_node("judged")
    assert told.metadata["budget_reached"].value is True
    assert follower.rows("select count(*), sum(cost_usd) from judged") == [(5, 5.0)]
    assert follower.tick() == set()


def test_the_sensor_looks_at_all_assets_from_the_start(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    defs = dg.Definitions.merge(build_graph(settings), build_automation(settings))

    (sensor,) = defs.sensors or ()

    assert isinstance(sensor, dg.AutomationConditionSensorDefinition)
    assert (sensor.name, sensor.default_status) == ("follow", dg.DefaultSensorStatus.RUNNING)
    graph = defs.resolve_asset_graph()
    assert sensor.asset_selection.resolve(graph) == graph.get_all_asset_keys()
