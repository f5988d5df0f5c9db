"""Judges judge again: the same replies, only what is missing, within the budget, in no metric."""

import asyncio
import shutil
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.evaluation.rejudge import SampledAnswer, rejudge, sample_answers
from eval_pipeline.evaluation.workers import StageProgress
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.journal import REJUDGED, SIGHTINGS, VERSIONS
from eval_pipeline.records.model import Model, Prices, Sighting
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Repeat
from eval_pipeline.records.run import Mode
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.runtime import run_async
from eval_pipeline.suites.benchmark import judge_prompt_of
from eval_pipeline_tests.boards import graded, taken, verdicts
from eval_pipeline_tests.builders import NOON, a_benchmark, a_journal, a_question
from eval_pipeline_tests.stand import JUDGE, STRONG, WEAK, Stand
from eval_pipeline_tests.test_metrics import published

COUNT = 20
LATER = NOON + timedelta(hours=1)
# The rules are certain of this answer where it is given, and of no other.
QUESTIONS = [a_question(f"q{number}", answer="the Treaty of Rome") for number in range(COUNT)]


class Bench(Stand):
    """A stand whose judges are known to the catalog, and may judge again."""

    def __init__(self, folder: Path, gateway: DemoGateway, **changes: Any) -> None:
        super().__init__(folder, gateway, **changes)
        self.warehouse = Warehouse(self.settings.database, self.journal)
        if not self.journal.files(SIGHTINGS):
            self.list_models(JUDGE)

    def list_models(self, *models: Model) -> None:
        seen = [Sighting(model=model, selected=True, seen_at=NOON) for model in models]
        self.journal.write_whole(SIGHTINGS, "the only one", records=seen)

    def draw(self, answers: int = 5, judge: str | None = None) -> list[SampledAnswer]:
        self.warehouse.publish()
        with self.warehouse.reading() as db:
            return sample_answers(db, answers, judge)

    def rejudge(self, answers: int = 5, repeats: int = 2, **changes: Any) -> list[StageProgress]:
        wanted = {"reliability": {"repeats": repeats}, **changes}
        return run_async(
            rejudge(
                self.draw(answers),
                "again",
                settings=self.settings.overridden(wanted),
                journal=self.journal,
            )
        )

    def repeats(self) -> list[Repeat]:
        return list(self.journal.read(REJUDGED))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        self.warehouse.publish()
        with self.warehouse.reading() as db:
            return db.sql(sql).fetchall()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which two models are judged by one judge, and published."""
    folder = tmp_path_factory.mktemp("prepared")
    with DemoGateway(QUESTIONS) as gateway:
        bench = Bench(folder, gateway, questions=QUESTIONS)
        bench.predict(STRONG, WEAK)
        bench.judge("demo/strong", "demo/weak")
        bench.warehouse.publish()
    return folder


@pytest.fixture
def stand(tmp_path: Path, prepared: Path) -> Iterator[Bench]:
    shutil.copytree(prepared / "data", tmp_path / "data")
    with DemoGateway(QUESTIONS) as gateway:
        yield Bench(tmp_path, gateway, questions=QUESTIONS)


def asked(tallies: list[StageProgress]) -> list[int]:
    return [tally.asked for tally in tallies]


def test_a_judge_judges_a_few_replies_as_often_again_as_it_is_told(stand: Bench) -> None:
    before = stand.rows("select * from metrics order by all")

    (tally,) = stand.rejudge(answers=5, repeats=3)

    assert (tally.model, tally.planned, tally.outcomes) == ("demo/judge", 15, {Outcome.OK: 15})
    times = Counter(one.prediction_id for one in stand.repeats())
    assert len(times) == 5 and set(times.values()) == {3}
    assert {one.repeat for one in stand.repeats()} == {1, 2, 3}
    assert {one.launch for one in stand.repeats()} == {"again"}
    assert stand.gateway.requests["demo/judge"] == 15
    assert stand.rows("select * from metrics order by all") == before
    assert stand.rows("select count(*), count(distinct repeat) from rejudged") == [(15, 3)]


def test_a_judge_is_asked_again_with_the_very_same_prompt(stand: Bench) -> None:
    stand.judge("demo/strong", "demo/weak", launch=Launch("anew", Mode.FRESH))
    before = stand.gateway.seen.copy()

    stand.rejudge(answers=2 * COUNT, repeats=1)

    assert before and stand.gateway.seen == before + before
    verdicts = {(one.prediction_id, one.judge_version) for one in stand.judgements()}
    assert verdicts < {(one.prediction_id, one.judge_version) for one in stand.repeats()}


def test_a_second_time_nobody_is_asked_and_for_more_only_what_is_missing(stand: Bench) -> None:
    stand.rejudge(answers=5, repeats=2)

    same, more_answers, more_often, fewer = (
        stand.rejudge(answers=5, repeats=2),
        stand.rejudge(answers=8, repeats=2),
        stand.rejudge(answers=8, repeats=3),
        stand.rejudge(answers=2, repeats=1),
    )

    assert [asked(one) for one in (same, more_answers, more_often, fewer)] == [[0], [6], [8], [0]]
    assert len({(one.prediction_id, one.repeat) for one in stand.repeats()}) == 24


def test_what_failed_is_asked_again_and_costs_nothing_twice(stand: Bench) -> None:
    stand.gateway.misbehave(Faults(server_error=0.5, seed=3))
    (during,) = stand.rejudge(answers=10, repeats=1, requests={"attempts": 1})
    stand.gateway.misbehave(Faults())

    (after,) = stand.rejudge(answers=10, repeats=1)

    failed = during.outcomes[Outcome.SERVER_ERROR]
    assert 0 < failed < 10
    assert after.outcomes == {Outcome.OK: failed}
    assert stand.rows("select count(*), count(score) from rejudged") == [(10, 10)]


def test_a_judge_that_is_refused_stops_at_once(stand: Bench) -> None:
    stand.gateway.misbehave(Faults(status={"demo/judge": 401}))

    (tally,) = stand.rejudge(answers=COUNT, judge={"num_workers": 1})

    assert tally.failed and tally.asked == 1


def test_nobody_is_asked_about_no_answers(stand: Bench) -> None:

    assert stand.rejudge(answers=0) == []
    assert stand.gateway.requests.total() == 0
    assert stand.draw(0, "no/judge") == []


def test_repetitions_count_in_the_budget(stand: Bench) -> None:
    dollar = JUDGE.model_copy(update={"prices": Prices(prompt=0, completion=0, request=1)})
    stand.list_models(dollar)
    limit: dict[str, Any] = {"budget": {"usd_per_run": 3}, "judge": {"num_workers": 1}}

    (tally,) = stand.rejudge(answers=10, **limit)
    (later,) = stand.rejudge(answers=10, **limit)

    assert (tally.asked, tally.budget_reached, tally.failed) == (3, True, False)
    assert tally.estimated_usd == pytest.approx(20)
    assert (later.asked, later.budget_reached) == (0, True)
    assert "The budget of 3 USD per run is spent" in str(later.stopped)
    # What judging again has cost is gone for judging too.
    stand.settings = stand.settings.overridden({"budget": {"usd_per_day": 3}})
    (judging,) = stand.judge("demo/strong", by=dollar, launch=Launch("more", Mode.FRESH))
    assert (judging.asked, judging.budget_reached) == (0, True)


def test_a_judge_without_a_price_is_warned_about_where_there_is_a_budget(stand: Bench) -> None:

    (tally,) = stand.rejudge(answers=1, budget={"usd_per_run": 5})

    assert ["no price is known" in warning for warning in tally.warnings] == [True]


def test_a_judge_that_is_gone_is_skipped_with_a_warning(stand: Bench) -> None:
    stand.list_models(STRONG)

    (tally,) = stand.rejudge()

    assert tally.warnings == ["demo/judge is not asked again: it is in no gateway's list any more."]
    assert (tally.asked, tally.failed, stand.repeats()) == (0, False, [])


def test_verdicts_under_another_prompt_are_not_repeated_under_this_one(stand: Bench) -> None:

    (tally,) = stand.rejudge(judge={"max_tokens": 9})

    (warning,) = tally.warnings
    assert "given with another prompt or token limit" in warning
    assert "name the judge in a launch of judged" in warning
    assert stand.repeats() == []


def test_what_the_warning_advises_helps(stand: Bench) -> None:
    stand.settings = stand.settings.overridden({"judge": {"max_tokens": 999}})
    (refused,) = stand.rejudge(answers=5, repeats=1)

    stand.judge("demo/strong", "demo/weak", this_judge=True)

    (tally,) = stand.rejudge(answers=5, repeats=1)
    assert refused.warnings and not tally.warnings
    assert (refused.asked, tally.asked) == (0, 5)


@pytest.mark.parametrize("models", [("demo/strong",), ("demo/strong", "demo/weak")])
def test_later_verdicts_on_trial_do_not_keep_a_judge_from_being_asked_again(
    stand: Bench, tmp_path: Path, models: tuple[str, ...]
) -> None:
    own, before = stand.settings, stand.draw(5)
    trial = tmp_path / "trial.txt"
    trial.write_text(f"{judge_prompt_of(own)}\nThis is a trial.")
    stand.settings = own.overridden({"judge": {"prompt": str(trial)}})
    stand.judge(*models, this_judge=True)
    (on_trial,) = stand.rejudge(answers=5, repeats=1)
    stand.settings = own

    (tally,) = stand.rejudge(answers=5, repeats=1)

    assert (tally.warnings, tally.asked, on_trial.asked) == ([], 5, 5)
    versions = Counter(one.judge_version for one in stand.repeats())
    assert len(versions) == 2 and set(versions.values()) == {5}
    (version,) = {one.judge_version for one in before}
    again = {one.prediction_id for one in stand.repeats() if one.judge_version == version}
    assert again == {one.prediction_id for one in before}


def test_what_the_rules_or_nobody_graded_is_not_judged_again(stand: Bench) -> None:
    stand.settings = stand.settings.overridden({"judge": {"rules": "first"}})
    stand.judge("demo/strong", this_judge=True)
    after_rules = [one for one in stand.judgements() if one.judge == "rules+demo/judge"]
    by_model = {one.prediction_id for one in after_rules if one.graded_by == "demo/judge"}

    alone, first = (stand.draw(2 * COUNT, judge) for judge in ("demo/judge", "rules+demo/judge"))
    tallies = stand.rejudge(answers=2 * COUNT, repeats=1)

    assert {one.prediction_id for one in first} == by_model
    assert (len(after_rules), len(alone)) == (COUNT, 2 * COUNT)
    assert 0 < len(first) < COUNT
    assert [(tally.model, tally.asked) for tally in tallies] == [
        ("demo/judge", 2 * COUNT),
        ("rules+demo/judge", len(first)),
    ]
    assert {(one.judge, one.graded_by) for one in stand.repeats()} == {
        ("demo/judge", "demo/judge"),
        ("rules+demo/judge", "demo/judge"),
    }


def test_the_rules_alone_are_never_asked_again(stand: Bench) -> None:
    stand.settings = stand.settings.overridden({"judge": {"rules": "only"}})
    stand.judge("demo/strong", this_judge=True)

    assert {one.judge for one in stand.draw(2 * COUNT)} == {"demo/judge"}


def test_the_replies_drawn_are_those_of_the_latest_complete_run(stand: Bench) -> None:
    stand.predict(STRONG, launch=Launch("run-2", Mode.FRESH))
    stand.settings = stand.settings.overridden({"budget": {"usd_per_run": 1.0}})
    stand.gateway.misbehave(Faults(cost_usd=0.5))
    (half,) = stand.judge("demo/strong")
    while_incomplete = stand.draw(2 * COUNT)
    stand.settings = stand.settings.overridden({"budget": {"usd_per_run": None}})
    stand.judge("demo/strong")

    drawn = stand.draw(2 * COUNT)

    assert 0 < half.asked < COUNT
    assert Counter(one.run_id for one in while_incomplete) == {"run-1": 2 * COUNT}
    assert Counter((one.model, one.run_id) for one in drawn) == {
        ("demo/strong", "run-2"): COUNT,
        ("demo/weak", "run-1"): COUNT,
    }


@pytest.mark.parametrize(
    ("scores", "drawn_from"), [([1.0, 0.0], "minted"), ([None, 0.0], "minted"), ([None], "draft")]
)
def test_replies_are_drawn_from_the_published_version_if_it_has_any_verdict(
    tmp_path: Path, scores: list[float | None], drawn_from: str
) -> None:
    minted, draft = a_benchmark(*QUESTIONS[:2]), a_benchmark(*QUESTIONS[:3], loaded_at=LATER)
    journal = a_journal(
        tmp_path, *graded(taken("demo/a", "minted", benchmark=minted), scores), benchmark=minted
    )
    named = minted.version.model_copy(update={"minted_as": "v1"})
    journal.write_whole(VERSIONS, "minted", records=[named])

    warehouse = published(
        tmp_path, *graded(taken("demo/a", "draft", benchmark=draft), [1.0] * 3), benchmark=draft
    )

    with warehouse.reading() as db:
        drawn = sample_answers(db, 10)
    assert {one.run_id for one in drawn} == {drawn_from}
    benchmark = minted if drawn_from == "minted" else draft
    assert {one.benchmark_version for one in drawn} == {benchmark.version.benchmark_version}


def test_what_a_version_of_a_judge_has_not_scored_of_the_published_one_is_drawn_from_the_draft(
    tmp_path: Path,
) -> None:
    minted, draft = a_benchmark(*QUESTIONS[:2]), a_benchmark(*QUESTIONS[:3], loaded_at=LATER)
    journal = a_journal(
        tmp_path, *graded(taken("demo/a", "minted", benchmark=minted), [1.0] * 2), benchmark=minted
    )
    named = minted.version.model_copy(update={"minted_as": "v1"})
    journal.write_whole(VERSIONS, "minted", records=[named])
    run = taken("demo/a", "draft", benchmark=draft)

    warehouse = published(
        tmp_path,
        *[*graded(run, [1.0] * 3), *verdicts(run, [1.0] * 3, judge_version="v2")],
        benchmark=draft,
    )

    with warehouse.reading() as db:
        drawn = Counter((one.judge_version, one.run_id) for one in sample_answers(db, 10))
    assert drawn == {("v1", "minted"): 2, ("v2", "draft"): 3}


def test_the_same_replies_are_drawn_each_time_and_fewer_are_among_more(stand: Bench) -> None:

    few, same, many = stand.draw(4), stand.draw(4), stand.draw(30)

    assert few == same == many[:4]
    assert len(many) == 30 == len(set(many))
    assert {one.model for one in many} == {"demo/strong", "demo/weak"}


def test_a_judge_who_has_judged_nothing_can_not_be_named(stand: Bench) -> None:

    assert {one.judge for one in stand.draw(5, "demo/judge")} == {"demo/judge"}
    with pytest.raises(RunError, match=r"no/judge has not judged .* have: demo/judge"):
        stand.draw(5, "no/judge")


def test_two_launches_at_once_do_not_pay_twice(stand: Bench) -> None:
    drawn = stand.draw(5)

    async def both() -> tuple[list[StageProgress], list[StageProgress]]:
        how: dict[str, Any] = {"settings": stand.settings, "journal": stand.journal}
        return await asyncio.gather(rejudge(drawn, "a", **how), rejudge(drawn, "b", **how))

    one, other = run_async(both())

    assert sorted(asked([*one, *other])) == [0, 10]


def test_a_flickering_judge_contradicts_itself_in_its_share(stand: Bench) -> None:
    first = {
        one.prediction_id: one.score
        for model in ("demo/strong", "demo/weak")
        for one in stand.judgements(model)
    }
    stand.gateway.misbehave(Faults(flickering=1))

    stand.rejudge(answers=2 * COUNT, repeats=1)

    again = {one.prediction_id: one.score for one in stand.repeats()}
    assert len(again) == 2 * COUNT
    assert again == {one: 1 - (score or 0) for one, score in first.items()}
    assert all("told to flicker" in one.reason for one in stand.repeats())


def test_how_often_a_judge_flickers_is_the_share_it_was_told() -> None:
    some, never = Faults(flickering=0.3), Faults(flickering=0.3, models=("other/judge",))

    turned = [some.flickers("demo/judge", f"content {n}", 0) for n in range(2000)]

    assert sum(turned) / len(turned) == pytest.approx(0.3, abs=0.04)
    assert len({some.flickers("demo/judge", "content", attempt) for attempt in range(50)}) == 2
    assert not any(never.flickers("demo/judge", f"content {n}", 0) for n in range(100))
