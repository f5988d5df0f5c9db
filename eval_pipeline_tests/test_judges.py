"""Several judges at once, each through its own gateway, none in the place of another."""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from eval_pipeline.defs.config import JudgedConfig
from eval_pipeline.defs.launch import evaluate
from eval_pipeline.evaluation.catalog import refresh
from eval_pipeline.evaluation.judge import judge
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.evaluation.workers import StageProgress
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.records.model import Model, Prices
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.run import Mode
from eval_pipeline.runtime import run_async
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline_tests.builders import a_model, settings_in
from eval_pipeline_tests.project import undrawn
from eval_pipeline_tests.stand import JUDGE, STRONG, Stand, outcomes
from eval_pipeline_tests.test_judge import ask_a_new_version
from eval_pipeline_tests.test_pipeline import Graph

OTHER = a_model("other/judge", request_name="demo/judge", gateway="other")


@pytest.fixture
def other(stand: Stand) -> Iterator[DemoGateway]:
    """A second gateway, to which the settings of the stand lead too."""
    with DemoGateway([]) as server:
        both = [
            {"name": "demo", "kind": "demo", "base_url": stand.gateway.base_url},
            {"name": "other", "kind": "demo", "base_url": server.base_url},
        ]
        stand.settings = stand.settings.overridden({"gateways": both})
        yield server


def judge_by(
    stand: Stand, *judges: Model, launch: Launch | None = None, models: Sequence[str] = ()
) -> list[StageProgress]:
    return run_async(
        judge(
            models or ["demo/strong"],
            judges,
            launch or Launch("judging"),
            settings=stand.settings,
            journal=stand.journal,
        )
    )


def verdicts(stand: Stand) -> Counter[tuple[str, bool]]:
    return Counter((one.judge, one.score is not None) for one in stand.judgements())


def test_every_judge_grades_everything_through_its_own_gateway(
    stand: Stand, other: DemoGateway
) -> None:
    stand.predict(STRONG)

    tallies = judge_by(stand, JUDGE, OTHER)

    assert [(tally.model, tally.asked) for tally in tallies] == [
        ("demo/strong by demo/judge", 3),
        ("demo/strong by other/judge", 3),
    ]
    assert verdicts(stand) == {("demo/judge", True): 3, ("other/judge", True): 3}
    assert stand.gateway.requests["demo/judge"] == other.requests["demo/judge"] == 3


def test_a_judge_that_comes_later_grades_what_the_first_has_done_and_nothing_twice(
    stand: Stand, other: DemoGateway
) -> None:
    stand.predict(STRONG)
    judge_by(stand, JUDGE)

    tallies = [[tally.asked for tally in judge_by(stand, JUDGE, OTHER)] for _ in range(2)]

    assert tallies == [[0, 3], [0, 0]]
    assert (stand.gateway.requests["demo/judge"], other.requests["demo/judge"]) == (3, 3)


@pytest.mark.parametrize(
    ("faults", "outcome"),
    [
        (Faults(server_error=1), Outcome.SERVER_ERROR),
        (Faults(status={"demo/judge": 401}), Outcome.AUTH),
        (Faults(status={"demo/judge": 404}), Outcome.UNKNOWN_MODEL),
    ],
)
def test_a_judge_that_fails_neither_stops_nor_replaces_the_others(
    stand: Stand, other: DemoGateway, faults: Faults, outcome: Outcome
) -> None:
    stand.predict(STRONG)
    other.misbehave(faults)
    during = judge_by(stand, JUDGE, OTHER)
    other.misbehave(Faults())

    after = judge_by(stand, JUDGE, OTHER)

    assert during[0].outcomes == {Outcome.OK: 3}
    assert set(during[1].outcomes) == {outcome}
    assert [tally.asked for tally in after] == [0, 3]
    scored = {judge: count for (judge, told), count in verdicts(stand).items() if told}
    assert scored == {"demo/judge": 3, "other/judge": 3}


def test_a_judge_that_had_to_stop_is_not_asked_about_the_next_run(
    stand: Stand, other: DemoGateway
) -> None:
    stand.predict(STRONG, launch=Launch("run-1"))
    stand.predict(STRONG, launch=Launch("run-2", Mode.FRESH))
    stand.settings = stand.settings.overridden({"judge": {"num_workers": 1}})
    other.misbehave(Faults(status={"demo/judge": 401}))

    tallies = judge_by(stand, JUDGE, OTHER)

    assert [(tally.asked, tally.failed) for tally in tallies] == [(6, False), (1, True)]
    assert other.requests["demo/judge"] == 1


def test_each_judge_keeps_its_own_pace(stand: Stand, other: DemoGateway) -> None:
    stand.predict(STRONG)
    stand.settings = stand.settings.overridden({"judge": {"num_workers": 2}})
    slow = Faults(latency_s=0.05)
    stand.gateway.misbehave(slow)
    other.misbehave(slow)

    judge_by(stand, JUDGE, OTHER)

    assert [one.most_at_once["demo/judge"] for one in (stand.gateway, other)] == [2, 2]


def test_what_several_judges_cost_is_estimated_by_what_each_has_cost_or_else_by_its_prices(
    stand: Stand, other: DemoGateway
) -> None:
    stand.predict(STRONG)
    cheap, dear = (
        judge.model_copy(update={"prices": Prices(prompt=usd, completion=usd)})
        for judge, usd in ((JUDGE, 1e-6), (OTHER, 1e-3))
    )

    (guessed,) = judge_by(stand, cheap)

    tallies = judge_by(stand, cheap, dear, launch=Launch("again", Mode.FRESH))

    estimates = [tally.estimated_usd or 0.0 for tally in tallies]
    assert guessed.estimated_usd is not None
    assert estimates == pytest.approx([guessed.cost_usd, 1000 * guessed.estimated_usd])


def test_a_budget_holds_for_all_judges_together(stand: Stand, other: DemoGateway) -> None:
    stand.predict(STRONG)
    dollars = {"budget": {"usd_per_run": 1.0}, "judge": {"num_workers": 1}}
    stand.settings = stand.settings.overridden(dollars)
    stand.gateway.misbehave(Faults(cost_usd=0.6))
    other.misbehave(Faults(cost_usd=0.6))

    tallies = judge_by(stand, JUDGE, OTHER)

    assert sum(tally.asked for tally in tallies) == 2
    assert all(tally.budget_reached for tally in tallies)


def test_several_models_and_judges_are_told_apart(stand: Stand, other: DemoGateway) -> None:
    weak = a_model("demo/weak", system_role=False, temperature=False)
    stand.predict(STRONG, weak)

    tallies = judge_by(stand, JUDGE, OTHER, models=["demo/strong", "demo/weak"])

    assert [tally.model for tally in tallies] == [
        f"{model} by {judge}"
        for model in ("demo/strong", "demo/weak")
        for judge in ("demo/judge", "other/judge")
    ]
    assert outcomes(tallies) == [{Outcome.OK: 3}] * 4


@pytest.mark.parametrize(
    ("given", "judge", "says_how"),
    [
        ({}, ("demo/judge", ("a/b",), "off"), False),
        ({"num_workers": 3}, ("demo/judge", ("a/b",), "off"), False),
        ({"judge": "c/d"}, ("c/d", (), "off"), True),
        ({"prompt": "other.txt"}, ("demo/judge", ("a/b",), "off"), True),
        ({"rules": "first"}, ("demo/judge", ("a/b",), "first"), True),
        ({"judge": "c/d", "rules": "only"}, ("c/d", (), "only"), True),
    ],
)
def test_a_launch_may_say_how_to_judge(
    tmp_path: Path, given: dict[str, Any], judge: tuple[object, ...], says_how: bool
) -> None:
    config = JudgedConfig(**given)

    chosen = config.apply(settings_in(tmp_path, judge={"also": ["a/b"]})).judge

    assert ((chosen.model, chosen.also, chosen.rules), config.says_how) == (judge, says_how)
    assert chosen.prompt.name == given.get("prompt", "judge.txt")


def test_a_launch_that_says_nonsense_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^run config: judge\.rules: .*'first' or 'only'"):
        JudgedConfig(rules="last").apply(settings_in(tmp_path))


def test_the_asset_judges_by_all_judges_and_shows_who_graded(stand: Stand) -> None:
    chosen = {"also": ["demo/average"], "rules": "first"}
    stand.settings = stand.settings.overridden({"judge": chosen})
    run_async(refresh(stand.settings, stand.journal))
    stand.predict(STRONG)

    with dg.DagsterInstance.ephemeral() as instance:
        graph = Graph(stand.settings, instance, checked=False)
        done = graph.run("judged")

    assert done.success
    assert graph.rows("select judge, count(*) from judged group by all order by all") == [
        ("rules+demo/average", 3),
        ("rules+demo/judge", 3),
    ]
    assert graph.rows("select distinct graded_by, reply_format, launch from judged order by all")[
        -1
    ] == ("rules", None, done.run_id)
    asked_with = graph.rows("select distinct prompt_hash from judged")
    assert asked_with == graph.rows("select distinct judge_prompt_hash from benchmark_versions")


def test_several_judges_leave_archived_runs_alone_and_one_judge_does_not(
    stand: Stand, other: DemoGateway, caplog: pytest.LogCaptureFixture
) -> None:
    stand.predict(STRONG, launch=Launch("old"))
    ask_a_new_version(stand, "new")

    with caplog.at_level(logging.INFO):
        several = judge_by(stand, JUDGE, OTHER)
    told = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    (alone,) = judge_by(stand, JUDGE)
    named = judge_by(stand, JUDGE, OTHER, launch=Launch("judging", continue_run="old"))

    assert [tally.planned for tally in several] == [3, 3]
    assert len(told) == 1 and "published benchmark version: 1. To judge" in told[0]
    assert alone.planned == 3
    assert [tally.planned for tally in named] == [0, 3]


@pytest.mark.slow
def test_the_rules_alone_need_no_judge_in_the_catalog(tmp_path: Path) -> None:
    settings = settings_in(
        tmp_path,
        judge={"model": "no/such-judge", "rules": "only"},
        selection={"models": ["demo/strong"]},
    )

    with undrawn():
        went_wrong = evaluate(settings, Mode.AUTO)

    assert went_wrong == []
    with duckdb.connect(str(settings.database), read_only=True) as db:
        judged = db.sql("select distinct judge, graded_by, attempts from judged").fetchall()
        prompts = db.sql("select distinct prompt_hash from judged").fetchall()
    assert judged == [("rules", "rules", 0)]
    assert prompts == [(None,)]
