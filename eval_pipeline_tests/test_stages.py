"""Asking and judging over a real server: resumed, repaired, stopped, never scored for an outage."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from eval_pipeline.benchmark import Benchmark, current
from eval_pipeline.journal import JUDGED, PREDICTIONS, Journal
from eval_pipeline.providers.demo.faults import Faults
from eval_pipeline.providers.demo.server import DemoGateway
from eval_pipeline.providers.gateways import Gateways
from eval_pipeline.records import Judgement, Model, Outcome, Prediction, Prices
from eval_pipeline.runs import Mode, latest
from eval_pipeline.settings import Settings
from eval_pipeline.stages.judge import judge
from eval_pipeline.stages.predict import Launch, predict
from eval_pipeline.stages.workers import Tally
from eval_pipeline_tests.builders import a_model, settings_in

STRONG, WEAK = a_model("demo/strong"), a_model("demo/weak", system_role=False, temperature=False)
JUDGE = a_model("demo/judge")


class Stand:
    """A folder, a simulated gateway and the settings that lead to it."""

    def __init__(self, folder: Path, gateway: DemoGateway, **changes: object) -> None:
        self.gateway = gateway
        self.settings = settings_in(
            folder,
            gateways=[{"name": "demo", "kind": "demo", "base_url": gateway.base_url}],
            **changes,
        )
        self.journal = Journal(self.settings.journal)

    def predict(
        self, *models: Model, launch: Launch | None = None, settings: Settings | None = None
    ) -> list[Tally]:
        async def go() -> list[Tally]:
            chosen = settings or self.settings
            async with Gateways(chosen) as gateways:
                return await predict(
                    models,
                    current(self.journal, chosen),
                    launch or Launch("run-1"),
                    settings=chosen,
                    journal=self.journal,
                    gateways=gateways,
                )

        return asyncio.run(go())

    def judge(
        self,
        *models: str,
        launch: Launch | None = None,
        by: Model = JUDGE,
        this_judge: bool = False,
    ) -> list[Tally]:
        async def go() -> list[Tally]:
            async with Gateways(self.settings) as gateways:
                return await judge(
                    models,
                    by,
                    launch or Launch("judging"),
                    settings=self.settings,
                    journal=self.journal,
                    gateways=gateways,
                    this_judge=this_judge,
                )

        return asyncio.run(go())

    def predictions(self, model: str = "demo/strong") -> dict[str, Prediction]:
        found = latest(self.journal.read(PREDICTIONS, model))
        return {key.item_id: prediction for key, prediction in sorted(found.items())}

    def judgements(self, model: str = "demo/strong") -> list[Judgement]:
        return list(self.journal.read(JUDGED, model))


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[DemoGateway]:
    settings = settings_in(tmp_path)
    items = current(Journal(settings.journal), settings).items
    with DemoGateway(tuple(items.values())) as server:
        yield server


@pytest.fixture
def stand(tmp_path: Path, gateway: DemoGateway) -> Stand:
    return Stand(tmp_path, gateway)


def outcomes(tallies: Sequence[Tally]) -> list[dict[Outcome, int]]:
    return [dict(tally.outcomes) for tally in tallies]


def test_an_interrupted_run_asks_only_what_is_missing(stand: Stand) -> None:
    first = stand.settings.overridden({"plan": {"max_samples": 3}, "budget": {"usd_per_run": 1e-9}})
    dear = STRONG.model_copy(update={"prices": Prices(prompt=1, completion=1)})
    one = first.overridden({"concurrency": {"num_workers": 1}})
    stand.predict(dear, settings=one)
    answered = set(stand.predictions())

    stand.predict(
        dear, launch=Launch("run-2"), settings=first.overridden({"budget": {"usd_per_run": None}})
    )

    assert answered == {"q1"}
    assert set(stand.predictions()) == {"q1", "q2", "q3"}
    assert {prediction.run_id for prediction in stand.predictions().values()} == {"run-1"}
    assert sorted(stand.gateway.seen.values()) == [1, 1, 1]


def test_a_spent_budget_stops_asking_and_says_so(stand: Stand) -> None:
    dear = STRONG.model_copy(update={"prices": Prices(prompt=1, completion=1)})
    tight = stand.settings.overridden(
        {"budget": {"usd_per_run": 0.5}, "concurrency": {"num_workers": 1}}
    )

    (tally,) = stand.predict(dear, settings=tight)

    assert tally.asked == 1
    assert tally.stopped == "The budget of 0.5 USD is spent."
    assert not tally.failed


def test_an_outage_is_kept_as_such_and_asked_again_the_next_time(stand: Stand) -> None:
    stand.gateway.misbehave(Faults(server_error=1))
    during = stand.predict(STRONG)
    stand.judge("demo/strong")
    stand.gateway.misbehave(Faults())

    after = stand.predict(STRONG, launch=Launch("run-2"))

    assert outcomes(during) == [{Outcome.SERVER_ERROR: 3}]
    assert stand.judgements() == []
    assert outcomes(after) == [{Outcome.OK: 3}]
    assert {one.run_id for one in stand.predictions().values()} == {"run-1"}


def test_a_transient_fault_is_repeated_within_the_request(stand: Stand) -> None:
    stand.gateway.misbehave(Faults(rate_limited=1, times=2))

    stand.predict(STRONG)

    assert {one.outcome for one in stand.predictions().values()} == {Outcome.OK}
    assert {one.attempts for one in stand.predictions().values()} == {3}


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(401, Outcome.AUTH), (402, Outcome.NO_CREDIT), (404, Outcome.UNKNOWN_MODEL)],
)
def test_what_can_not_get_better_stops_that_model_only(
    stand: Stand, status: int, outcome: Outcome
) -> None:
    stand.gateway.misbehave(Faults(status={"demo/weak": status}))
    one_by_one = stand.settings.overridden({"concurrency": {"num_workers": 1}})

    strong, weak = stand.predict(STRONG, WEAK, settings=one_by_one)

    assert (strong.asked, strong.stopped) == (3, None)
    assert dict(weak.outcomes) == {outcome: 1}
    assert weak.failed
    assert f"demo/weak: HTTP {status}" in (weak.stopped or "")


def test_a_missing_key_asks_nobody_and_says_which(tmp_path: Path, gateway: DemoGateway) -> None:
    stand = Stand(tmp_path, gateway)
    openrouter = [{"name": "demo", "kind": "openrouter"}]
    settings = settings_in(tmp_path, gateways=openrouter)

    (tally,) = stand.predict(STRONG, settings=settings)

    assert tally.failed
    assert "put OPENROUTER_API_KEY=… into .env" in (tally.stopped or "")


def test_a_model_without_system_role_and_temperature_is_asked_without_them(stand: Stand) -> None:
    refused = stand.predict(a_model("demo/weak"))

    asked = stand.predict(WEAK, launch=Launch("run-2", Mode.FRESH))

    assert outcomes(refused) == [{Outcome.BAD_REQUEST: 3}]
    assert outcomes(asked) == [{Outcome.OK: 3}]


def test_streamed_or_not_a_model_gives_the_same_answers(stand: Stand) -> None:
    stand.predict(STRONG)
    streamed = {item: one.answer for item, one in stand.predictions().items()}

    stand.predict(a_model(streaming=False), launch=Launch("run-2", Mode.FRESH))

    whole = [one for one in stand.journal.read(PREDICTIONS) if one.run_id == "run-2"]
    assert {one.item_id: one.answer for one in whole} == streamed
    assert all(one.first_token_s for one in stand.journal.read(PREDICTIONS))


def test_a_cost_is_estimated_from_the_prices_of_the_catalog(stand: Stand) -> None:
    stand.predict(a_model(prices=Prices(prompt=0.001, completion=0.01, request=0.5)))

    usage = stand.predictions()["q1"].usage
    assert usage.input_tokens and usage.output_tokens
    expected = usage.input_tokens * 0.001 + usage.output_tokens * 0.01 + 0.5
    assert usage.cost_usd == pytest.approx(expected)
    assert usage.cost_estimated


def test_a_judge_outage_scores_nothing_and_is_repaired_without_asking_the_model(
    stand: Stand,
) -> None:
    stand.predict(STRONG)
    stand.gateway.misbehave(Faults(server_error=1, models=("demo/judge",)))
    during = stand.judge("demo/strong")
    unscored = [one.score for one in stand.judgements()]
    stand.gateway.misbehave(Faults())
    asked_before = stand.gateway.requests["demo/strong"]

    after = stand.judge("demo/strong")

    assert outcomes(during) == [{Outcome.SERVER_ERROR: 3}]
    assert unscored == [None, None, None]
    assert outcomes(after) == [{Outcome.OK: 3}]
    assert stand.gateway.requests["demo/strong"] == asked_before
    assert stand.judge("demo/strong")[0].asked == 0


def test_a_verdict_that_can_not_be_read_is_kept_with_its_text_and_no_score(stand: Stand) -> None:
    stand.predict(STRONG)

    stand.judge("demo/strong", by=a_model("demo/strong"))

    kept = stand.judgements()
    assert {one.outcome for one in kept} == {Outcome.JUDGE_UNPARSABLE}
    assert {one.score for one in kept} == {None}
    assert all("Simulated reply" in (one.raw_reply or "") for one in kept)


def test_the_models_own_failing_is_wrong_without_asking_the_judge(stand: Stand) -> None:
    nothing_said = stand.settings.overridden(
        {"experiments": {"default": {"max_tokens": 1, "temperature": None}}}
    )
    stand.predict(STRONG, settings=nothing_said)
    truncated = stand.predictions()
    with_text = [one for one in truncated.values() if (one.answer or "").strip()]

    stand.judge("demo/strong")

    assert {one.outcome for one in truncated.values()} == {Outcome.TRUNCATED}
    assert {one.score for one in stand.judgements()} == {0.0}
    assert stand.gateway.requests["demo/judge"] == len(with_text)


@pytest.mark.parametrize(
    ("launch", "this_judge", "judged_again"),
    [
        (Launch("again"), False, 0),
        (Launch("again", Mode.RESUME), False, 0),
        (Launch("again", Mode.FRESH), False, 3),
        (Launch("again", Mode.FRESH, "run-1"), False, 3),
        (Launch("again", Mode.FRESH, "other"), False, 0),
        (Launch("again"), True, 3),
    ],
)
def test_what_is_judged_again_is_a_matter_of_mode_and_judge(
    stand: Stand, launch: Launch, this_judge: bool, judged_again: int
) -> None:
    stand.predict(STRONG)
    stand.judge("demo/strong")
    other = a_model("demo/other-judge", request_name="demo/judge")

    (tally,) = stand.judge("demo/strong", launch=launch, by=other, this_judge=this_judge)

    assert tally.asked == judged_again


def test_two_judgings_at_once_pay_once(stand: Stand) -> None:
    stand.predict(STRONG)

    async def both() -> None:
        async with Gateways(stand.settings) as gateways:
            await asyncio.gather(
                *(
                    judge(
                        ["demo/strong"],
                        JUDGE,
                        Launch(name),
                        settings=stand.settings,
                        journal=stand.journal,
                        gateways=gateways,
                    )
                    for name in ("one", "two")
                )
            )

    asyncio.run(both())

    assert stand.gateway.requests["demo/judge"] == 3


def test_a_prediction_that_was_asked_again_is_judged_again(stand: Stand) -> None:
    stand.predict(STRONG)
    stand.judge("demo/strong")

    stand.predict(STRONG, launch=Launch("run-2", Mode.FRESH))
    (tally,) = stand.judge("demo/strong")

    assert tally.asked == 3


def test_what_was_loaded_once_stays_the_benchmark_until_it_is_loaded_again(stand: Stand) -> None:
    before: Benchmark = current(stand.journal, stand.settings)
    (stand.settings.root / "questions.jsonl").unlink()

    after = current(stand.journal, stand.settings)

    assert after.version == before.version
    assert after.items == before.items
