"""Asking over a real server: resumed, repaired, stopped, never scored for an outage."""

import asyncio
import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.evaluation.predict import Launch, predict
from eval_pipeline.evaluation.reuse import reuse_answers
from eval_pipeline.evaluation.state import Pending
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.journal import PREDICTIONS, RUNS, Journal, JournalError, JournalWriter, Stream
from eval_pipeline.records.item import Item
from eval_pipeline.records.model import Model, Prices
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Prediction
from eval_pipeline.records.run import Mode
from eval_pipeline.runtime import run_async
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import Benchmark, current
from eval_pipeline.suites.kinds import Prompts
from eval_pipeline_tests.builders import a_model, settings_in
from eval_pipeline_tests.stand import STRONG, WEAK, Stand, outcomes


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
    assert tally.stopped == (f"The budget of 0.5 USD per run is spent ({tally.cost_usd:.4f} USD).")
    assert (tally.failed, tally.budget_reached) == (False, True)


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
    [
        (401, Outcome.AUTH),
        (402, Outcome.NO_CREDIT),
        (403, Outcome.FORBIDDEN),
        (404, Outcome.UNKNOWN_MODEL),
    ],
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


@pytest.mark.parametrize(
    ("outcome", "stops_at_once", "stops_later"),
    [
        (Outcome.AUTH, True, True),
        (Outcome.NO_CREDIT, True, True),
        (Outcome.FORBIDDEN, True, False),
        (Outcome.UNKNOWN_MODEL, True, False),
        (Outcome.BAD_REQUEST, False, False),
    ],
)
def test_a_refusal_stops_a_model_unless_it_may_concern_that_request_only(
    outcome: Outcome, stops_at_once: bool, stops_later: bool
) -> None:
    assert outcome.is_hopeless(answered_before=False) is stops_at_once
    assert outcome.is_hopeless(answered_before=True) is stops_later


def test_a_model_that_breaks_down_does_not_take_the_others_with_it(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Journal.writer

    def broken_for_weak(self: Journal, stream: Stream[Any], *parts: str) -> JournalWriter[Any]:
        if parts[0] == "demo/weak":
            raise JournalError("no room for demo/weak")
        return original(self, stream, *parts)

    monkeypatch.setattr(Journal, "writer", broken_for_weak)

    weak, strong = stand.predict(WEAK, STRONG)

    assert (weak.failed, weak.stopped) == (True, "no room for demo/weak")
    assert (strong.failed, strong.asked) == (False, 3)


def test_our_own_fault_with_one_item_does_not_cost_the_others(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Prompts.messages

    def broken_for_one(prompts: Prompts, question: Item, model: Model) -> Any:
        assert question.id != "q2", "a bug"
        return original(prompts, question, model)

    monkeypatch.setattr(Prompts, "messages", broken_for_one)

    (tally,) = stand.predict(STRONG)

    assert dict(tally.outcomes) == {Outcome.OK: 2, Outcome.INTERNAL_ERROR: 1}
    assert set(stand.predictions()) == {"q1", "q3"}


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
    assert {one.first_token_s for one in whole} == {None}
    assert all(one.first_token_s for one in stand.journal.read(PREDICTIONS, "demo/strong", "run-1"))


def test_a_cost_is_estimated_from_the_prices_of_the_catalog(stand: Stand) -> None:
    stand.predict(a_model(prices=Prices(prompt=0.001, completion=0.01, request=0.5)))

    usage = stand.predictions()["q1"].usage
    assert usage.input_tokens and usage.output_tokens
    expected = usage.input_tokens * 0.001 + usage.output_tokens * 0.01 + 0.5
    assert usage.cost_usd == pytest.approx(expected)
    assert usage.cost_estimated


def test_what_was_loaded_once_stays_the_benchmark_until_it_is_loaded_again(stand: Stand) -> None:
    before: Benchmark = current(stand.journal, stand.settings)
    (stand.settings.root / "questions.jsonl").unlink()

    after = current(stand.journal, stand.settings)

    assert after.version == before.version
    assert after.items == before.items


def test_a_model_that_is_not_pinned_to_a_provider_is_warned_about(
    tmp_path: Path, gateway: DemoGateway
) -> None:
    stand = Stand(tmp_path, gateway)
    routing = {"name": "demo", "kind": "openrouter", "base_url": gateway.base_url}
    settings = settings_in(tmp_path, gateways=[routing])
    pinned = a_model("demo/average", provider="somebody")

    loose, firm = stand.predict(STRONG, pinned, settings=settings)

    assert "demo/strong is not pinned to a provider" in loose.warnings[0]
    assert firm.warnings == []


def test_parameters_of_a_model_win_over_those_of_the_experiment(stand: Stand) -> None:
    settings = stand.settings.overridden(
        {
            "experiments": {"default": {"max_tokens": 500, "extra": {"seed": 1, "user": "us"}}},
            "overrides": {"demo/strong": {"max_tokens": 5, "extra": {"seed": 2}}},
        }
    )

    strong, average = stand.predict(STRONG, a_model("demo/average"), settings=settings)

    assert outcomes([strong, average]) == [{Outcome.TRUNCATED: 3}, {Outcome.OK: 3}]
    (run,) = stand.journal.read(RUNS, "demo/strong")
    assert run.parameters["max_tokens"] == 5
    assert run.parameters["extra"] == {"seed": 2, "user": "us"}


@pytest.mark.parametrize("dialect", ["chat_completions", "responses", "messages"])
def test_where_an_answer_came_from_is_kept(stand: Stand, dialect: str) -> None:
    stand.predict(a_model("demo/strong", dialect=dialect, provider="pinned"))

    one = stand.predictions()["q1"]
    assert (one.outcome, one.attempts, len(one.request_hash)) == (Outcome.OK, 1, 16)
    assert one.generation_id and one.model_reported == "demo/strong" and one.finish_reason
    assert one.served_by in {"Simulated", "pinned"}
    assert one.usage.input_tokens and one.usage.output_tokens
    assert one.first_token_s is not None and one.latency_s is not None
    assert one.generation_s == pytest.approx(one.latency_s - one.first_token_s)


HASHES = {
    "chat_completions": "9b2fa308ff2a06a9",
    "responses": "394205be0219a26c",
    "messages": "512ee31de0c7e905",
}


@pytest.mark.parametrize("dialect", HASHES)
def test_the_same_request_has_the_same_hash_in_every_version(stand: Stand, dialect: str) -> None:
    stand.predict(a_model("demo/strong", dialect=dialect))

    assert stand.predictions()["q1"].request_hash == HASHES[dialect]


@pytest.mark.parametrize(
    ("per_minute", "overrides", "least_s"),
    [
        # Six requests of two models, ten a second; then three of one model, five a second.
        (600, {}, 5 / 10),
        (6_000, {"demo/average": {"requests_per_minute": 300}}, 2 / 5),
    ],
)
def test_limits_of_the_gateway_and_of_the_model_are_kept(
    tmp_path: Path,
    gateway: DemoGateway,
    per_minute: int,
    overrides: dict[str, Any],
    least_s: float,
) -> None:
    limited = {"name": "demo", "kind": "demo", "requests_per_minute": per_minute}
    limited["base_url"] = gateway.base_url
    stand = Stand(tmp_path, gateway)
    settings = settings_in(tmp_path, gateways=[limited], overrides=overrides)
    began = time.monotonic()

    stand.predict(STRONG, a_model("demo/average"), settings=settings)

    assert time.monotonic() - began >= least_s - 0.1


def test_how_far_it_is_stands_in_the_log_also_while_nothing_comes(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("eval_pipeline.evaluation.workers.PROGRESS_EVERY_S", 0.05)
    stand.gateway.misbehave(Faults(latency_s=0.3))

    with caplog.at_level(logging.INFO):
        stand.predict(STRONG)

    told = [record.message for record in caplog.records if "progress" in record.message]
    assert told[0].startswith("progress model=demo/strong done=0 planned=3 per_s=0.0 ")
    assert "under_way=3 to_ask_again=0" in told[0]


def test_a_lock_that_can_not_be_taken_stops_that_model_only(stand: Stand) -> None:
    (stand.journal.root / "locks" / "predictions-demo%2Fweak.lock").mkdir(parents=True)

    strong, weak = stand.predict(STRONG, WEAK)

    assert (strong.asked, strong.failed) == (3, False)
    assert (weak.asked, weak.failed) == (0, True)
    assert "It cannot be written" in str(weak.stopped)


def test_a_run_that_has_answers_is_not_failed_by_one_item_that_is_refused(stand: Stand) -> None:
    dear = a_model(prices=Prices(prompt=1, completion=1))
    tight = {"budget": {"usd_per_run": 0.5}, "concurrency": {"num_workers": 1}}
    stand.predict(dear, settings=stand.settings.overridden(tight))
    stand.gateway.misbehave(Faults(status={"demo/strong": 404}))

    (tally,) = stand.predict(dear, launch=Launch("run-2"))

    assert outcomes([tally]) == [{Outcome.UNKNOWN_MODEL: 2}]
    assert not tally.failed


def test_a_launch_that_is_cancelled_waits_for_what_is_being_taken_over(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand.predict(STRONG)
    original, began, ended = reuse_answers, threading.Event(), threading.Event()

    def slow(*args: Any) -> Pending:
        began.set()
        time.sleep(0.2)
        left = original(*args)
        ended.set()
        return left

    monkeypatch.setattr("eval_pipeline.evaluation.predict.reuse_answers", slow)
    settings = sampled(stand, 2)
    benchmark = current(stand.journal, settings)

    async def cancelled() -> bool:
        launch = Launch("run-2")
        work = predict([STRONG], benchmark, launch, settings=settings, journal=stand.journal)
        task = asyncio.create_task(work)
        await asyncio.to_thread(began.wait)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled() and ended.is_set()

    assert run_async(cancelled())
    assert sorted(replies(stand, "run-2")) == [("q1", 0), ("q2", 0), ("q3", 0)]
    assert sorted(stand.gateway.seen.values()) == [1, 1, 1]


def replies(stand: Stand, run_id: str = "run-1") -> dict[tuple[str, int], Prediction]:
    """The last word on each item and sample."""
    found = stand.journal.read(PREDICTIONS, "demo/strong", run_id)
    in_time = sorted(found, key=lambda one: one.finished_at)
    return {(one.item_id, one.sample): one for one in in_time}


def sampled(stand: Stand, samples: int, **changes: Any) -> Settings:
    return stand.settings.overridden({"plan": {"samples": samples}, **changes})


def test_each_item_is_asked_as_often_as_the_settings_say(stand: Stand) -> None:
    one_by_one = sampled(stand, 3, concurrency={"num_workers": 1})

    (tally,) = stand.predict(STRONG, settings=one_by_one)

    assert (tally.planned, tally.asked) == (9, 9)
    assert list(replies(stand)) == [
        (name, sample) for sample in range(3) for name in ("q1", "q2", "q3")
    ]
    assert len({one.prediction_id for one in replies(stand).values()}) == 9
    (run,) = stand.journal.read(RUNS, "demo/strong")
    assert (run.samples, len(run.plan)) == (3, 3)
    assert sorted(stand.gateway.seen.values()) == [3, 3, 3]


def test_an_interrupted_run_with_samples_asks_exactly_the_missing_ones(stand: Stand) -> None:
    dear = a_model(prices=Prices(prompt=0, completion=0, request=1))
    tight = sampled(stand, 3, budget={"usd_per_run": 4}, concurrency={"num_workers": 1})
    stand.predict(dear, settings=tight)
    answered = dict(replies(stand))

    (tally,) = stand.predict(dear, launch=Launch("run-2"), settings=sampled(stand, 3))

    assert list(answered) == [("q1", 0), ("q2", 0), ("q3", 0), ("q1", 1)]
    assert (tally.planned, tally.asked) == (5, 5)
    assert len(replies(stand)) == 9
    assert {pair: replies(stand)[pair] for pair in answered} == answered
    assert sorted(stand.gateway.seen.values()) == [3, 3, 3]


def test_of_a_run_with_samples_only_what_failed_is_asked_again(stand: Stand) -> None:
    seeded = sampled(stand, 4, experiments={"default": {"extra": {"seed": 1}}})
    stand.gateway.misbehave(Faults(context_too_long=0.5))
    stand.predict(STRONG, settings=seeded)
    failed = [pair for pair, one in replies(stand).items() if not one.outcome.is_result]
    stand.gateway.misbehave(Faults())

    (tally,) = stand.predict(STRONG, launch=Launch("run-2"), settings=seeded)

    assert 0 < len(failed) < 12
    assert dict(tally.outcomes) == {Outcome.OK: len(failed)}
    assert {one.outcome for one in replies(stand).values()} == {Outcome.OK}


def test_without_a_seed_every_sample_is_the_same_request(stand: Stand) -> None:
    stand.predict(STRONG, settings=sampled(stand, 2))

    found = replies(stand)
    assert found["q1", 1].request_hash == HASHES["chat_completions"]
    assert found["q1", 0].request_hash == HASHES["chat_completions"]


@pytest.mark.parametrize("dialect", HASHES)
def test_where_there_is_a_seed_every_sample_has_its_own(stand: Stand, dialect: str) -> None:
    model = a_model("demo/strong", dialect=dialect)
    for run_id, seed, samples in (("several", 7, 3), ("later", 9, 1)):
        settings = sampled(stand, samples, experiments={"default": {"extra": {"seed": seed}}})
        stand.predict(model, launch=Launch(run_id), settings=settings)

    several, later = replies(stand, "several"), replies(stand, "later")
    assert {(one.request_hash, one.answer) for one in later.values()} == {
        (one.request_hash, one.answer) for (_, sample), one in several.items() if sample == 2
    }
    assert len({one.request_hash for one in several.values()}) == 9


@pytest.mark.parametrize("seed", ["seven", True])
def test_a_seed_that_is_no_whole_number_is_sent_as_it_is(stand: Stand, seed: object) -> None:
    settings = sampled(stand, 2, experiments={"default": {"extra": {"seed": seed}}})

    stand.predict(STRONG, settings=settings)

    found = replies(stand)
    assert found["q1", 1].request_hash == found["q1", 0].request_hash


def test_several_samples_at_temperature_0_are_warned_about_once(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    noise = "demo/strong: several samples at temperature 0 measure only the server's noise."
    warned = {}
    for samples, temperature in ((2, 0), (1, 0), (2, 1)):
        warm = sampled(stand, samples, experiments={"default": {"temperature": temperature}})
        caplog.clear()
        (tally,) = stand.predict(STRONG, launch=Launch(f"{samples} {temperature}"), settings=warm)
        told = [record.message for record in caplog.records]
        warned[samples, temperature] = (tally.warnings, told.count(noise))

    assert warned == {(2, 0): ([noise], 1), (1, 0): ([], 0), (2, 1): ([], 0)}


def test_what_is_left_is_told_in_items_or_in_replies(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        stand.predict(STRONG, settings=sampled(stand, 1))
        stand.predict(STRONG, launch=Launch("run-2"), settings=sampled(stand, 2))

    assert "run run-1 has 0 of 3 items, 3 to ask" in caplog.text
    assert "run run-2 has 3 of 6 replies (3 items x 2 samples), 3 to ask" in caplog.text


def test_every_sample_is_in_the_estimate(stand: Stand) -> None:
    dear = a_model(prices=Prices(prompt=0, completion=0, request=0.01))

    (guessed,) = stand.predict(dear, settings=sampled(stand, 2))
    (known,) = stand.predict(dear, launch=Launch("run-2"), settings=sampled(stand, 5))

    assert guessed.estimated_usd == pytest.approx(2 * 3 * 0.01)
    assert known.estimated_usd == pytest.approx((5 - 2) * 3 * 0.01)


def test_simulated_models_vary_with_the_seed_and_not_without(
    tmp_path: Path, gateway: DemoGateway
) -> None:
    stand = Stand(tmp_path, gateway)
    mind = a_model("demo/average")
    for run_id, extra in (("plain", {}), ("seeded", {"seed": 1}), ("repeated", {"seed": 1})):
        settings = sampled(stand, 8, experiments={"default": {"extra": extra}})
        stand.predict(mind, launch=Launch(run_id, Mode.FRESH), settings=settings)

    said: dict[str, dict[tuple[str, int], str | None]] = {}
    for one in stand.journal.read(PREDICTIONS, "demo/average"):
        said.setdefault(one.run_id, {})[one.item_id, one.sample] = one.answer
    assert len(set(said["plain"].values())) == 3
    assert len(set(said["seeded"].values())) > 3
    assert said["repeated"] == said["seeded"]
