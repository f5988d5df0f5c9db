"""The plan of a launch says what the launch then does, and leaves everything as it was."""

import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.grading import STEPS
from eval_pipeline.evaluation.plan import ModelPlan, check_budgets, draw_up
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.evaluation.reuse import ENOUGH_ALIKE, Versions, find_reusable
from eval_pipeline.evaluation.state import Pending, ReplyKey
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.journal import JUDGED, RUNS
from eval_pipeline.records.item import ItemKey
from eval_pipeline.records.model import Model, Prices
from eval_pipeline.records.prediction import FREE
from eval_pipeline.records.run import IMPORTED_FROM, Mode
from eval_pipeline.runtime import run_async
from eval_pipeline.settings.sections import PACKAGE
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import Benchmark, current, keep, load_benchmark
from eval_pipeline_tests.builders import (
    a_benchmark,
    a_journal,
    a_judgement,
    a_model,
    a_prediction,
    a_question,
    a_run,
    settings_in,
    write_task,
)
from eval_pipeline_tests.project import a_project, call
from eval_pipeline_tests.stand import JUDGE, STRONG, WEAK, Stand

PRICED = a_model("demo/strong", prices=Prices(prompt=1e-5, completion=1e-4, request=0.01))
NEXT = Launch("next", Mode.FIX)


def plans_of(
    stand: Stand,
    *models: Model,
    launch: Launch = NEXT,
    settings: Settings | None = None,
    benchmark: Benchmark | None = None,
    judging: bool = True,
) -> list[ModelPlan]:
    chosen = settings or stand.settings
    found = benchmark or current(stand.journal, chosen)
    return run_async(draw_up(chosen, models, found, launch, stand.journal, judging=judging))


def tree(folder: Path) -> dict[Path, str]:
    """Every file and folder with what is in it."""
    return {
        path: sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in folder.rglob("*")
    }


def set_here(stand: Stand, **plan: object) -> Settings:
    return stand.settings.overridden({"plan": plan})


def ask(stand: Stand, run_id: str = "old", mode: Mode = Mode.AUTO, **plan: object) -> None:
    stand.predict(STRONG, launch=Launch(run_id, mode), settings=set_here(stand, **plan))


def evaluate(stand: Stand, run_id: str = "old", mode: Mode = Mode.AUTO, **plan: object) -> None:
    ask(stand, run_id, mode, **plan)
    stand.judge("demo/strong")


def fail(stand: Stand) -> None:
    stand.gateway.misbehave(Faults(server_error=1))
    ask(stand)
    stand.gateway.misbehave(Faults())


def interrupt(stand: Stand) -> None:
    """A run in which all failed at first, and then two of three were answered."""
    fail(stand)
    dear = a_model(prices=Prices(prompt=0, completion=0, request=1))
    tight = {"budget": {"usd_per_run": 2}, "concurrency": {"num_workers": 1}}
    settings = stand.settings.overridden(tight)
    stand.predict(dear, launch=Launch("later", Mode.FIX), settings=settings)


def leave_two_runs_unjudged(stand: Stand) -> None:
    ask(stand, "whole")
    ask(stand, "part", Mode.FRESH, test_filter="q1")


def import_one_without_verdicts(stand: Stand) -> None:
    """Its own judge has not scored it: only a launch that names it does."""
    ask(stand)
    (run,) = stand.journal.read(RUNS, "demo/strong")
    imported = run.model_copy(update={"parameters": {**run.parameters, IMPORTED_FROM: "elsewhere"}})
    stand.journal.write_whole(RUNS, run.model, run.run_id, records=[imported])


def change(stand: Stand, **changes: str) -> None:
    """Another benchmark version, in which q2 has changed; it is not loaded yet."""
    path = stand.settings.root / "questions.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[1].update(changes)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def reword(stand: Stand) -> None:
    evaluate(stand)
    change(stand, question="What is 6 minus 7?")


def correct_the_reference(stand: Stand) -> None:
    evaluate(stand)
    change(stand, answer="43")


def be_strict(stand: Stand) -> None:
    """Another judge prompt, so another version: all is judged again and nothing is asked."""
    evaluate(stand)
    prompt = stand.settings.root / "judge.txt"
    prompt.write_text((PACKAGE / "prompts" / "judge.txt").read_text() + "\nBe strict.")
    stand.settings = stand.settings.overridden({"judge": {"prompt": Path("judge.txt")}})


def allow_less(stand: Stand) -> None:
    """Verdicts of the same judge, but not given in the same way."""
    evaluate(stand)
    stand.settings = stand.settings.overridden({"judge": {"max_tokens": 5000}})


def allow_less_and_reword(stand: Stand) -> None:
    allow_less(stand)
    change(stand, question="What is 6 minus 7?")


def nothing(_stand: Stand) -> None:
    """As at first."""


Before = Callable[[Stand], None]


@pytest.mark.parametrize(
    ("before", "launch", "chosen", "expected"),
    [
        (nothing, NEXT, {}, "new 3: 3 calls, 3 verdicts"),
        (nothing, NEXT, {"samples": 2}, "new 6: 6 calls, 6 verdicts"),
        (nothing, NEXT, {"test_filter": "q[12]$"}, "new 2: 2 calls, 2 verdicts"),
        (nothing, Launch("next", Mode.RESUME), {}, "new 3: 3 calls, 3 verdicts"),
        (ask, NEXT, {}, "old 3: 0 calls, 3 verdicts"),
        (ask, Launch("next", Mode.FRESH), {}, "new 3: 3 calls, 6 verdicts"),
        (evaluate, NEXT, {}, "old 3: 0 calls, 0 verdicts"),
        (evaluate, Launch("next"), {}, "new 3: 3 calls, 3 verdicts"),
        (evaluate, NEXT, {"samples": 3}, "new 9: 6 calls, 6 verdicts"),
        (evaluate, NEXT, {"max_samples": 2}, "new 2: 0 calls, 0 verdicts"),
        (fail, Launch("next").for_failed(), {}, "new 3: 3 calls, 3 verdicts"),
        (interrupt, NEXT, {}, "old 3: 1 calls, 3 verdicts"),
        (interrupt, Launch("next", Mode.RESUME), {}, "old 3: 0 calls, 2 verdicts"),
        (fail, NEXT, {}, "old 3: 3 calls, 3 verdicts"),
        (fail, Launch("next", Mode.RESUME), {}, "old 3: 0 calls, 0 verdicts"),
        (fail, Launch("next", Mode.FIX, "ol"), {}, "old 3: 3 calls, 3 verdicts"),
        (leave_two_runs_unjudged, NEXT, {}, "whole 3: 0 calls, 4 verdicts"),
        (leave_two_runs_unjudged, Launch("x", Mode.FIX, "part"), {}, "part 1: 0 calls, 1 verdicts"),
        (import_one_without_verdicts, NEXT, {}, "new 3: 3 calls, 3 verdicts"),
        (reword, NEXT, {}, "new 3: 1 calls, 1 verdicts"),
        (correct_the_reference, NEXT, {}, "new 3: 0 calls, 1 verdicts"),
        (be_strict, NEXT, {}, "new 3: 0 calls, 3 verdicts"),
        (allow_less, NEXT, {}, "old 3: 0 calls, 0 verdicts"),
        (allow_less, NEXT, {"samples": 2}, "new 6: 3 calls, 6 verdicts"),
        (allow_less_and_reword, NEXT, {}, "new 3: 1 calls, 3 verdicts"),
    ],
)
def test_the_launch_then_asks_what_was_planned(
    stand: Stand, before: Before, launch: Launch, chosen: dict[str, Any], expected: str
) -> None:
    before(stand)
    settings, asked = set_here(stand, **chosen), stand.gateway.requests.copy()
    benchmark, there = load_benchmark(settings), tree(stand.settings.root)

    (plan,) = plans_of(stand, STRONG, launch=launch, settings=settings, benchmark=benchmark)

    assert (stand.gateway.requests, tree(stand.settings.root)) == (asked, there)
    run = plan.run_id or "new"
    told = f"{run} {plan.planned}: {plan.asking.calls} calls, {plan.judging.calls} verdicts"
    assert told == expected
    assert plan.why_not is None
    assert plan.planned == plan.items * plan.samples
    keep(benchmark, stand.journal)
    stand.predict(STRONG, launch=launch, settings=settings)
    by_now = stand.gateway.requests["demo/strong"] - asked["demo/strong"]
    assert by_now == plan.asking.calls
    only = Launch("judging", continue_run=launch.continue_run)
    stand.judge("demo/strong", launch=only)
    assert stand.gateway.requests["demo/judge"] - asked["demo/judge"] == plan.judging.calls


def test_what_is_there_and_what_is_taken_over_are_told_apart(stand: Stand) -> None:
    interrupt(stand)

    (same,) = plans_of(stand, STRONG)
    (more,) = plans_of(stand, STRONG, settings=set_here(stand, samples=2))

    assert (same.answered, same.carried, same.asking.calls) == (2, 0, 1)
    assert (more.answered, more.carried, more.asking.calls) == (0, 2, 4)


def test_before_there_is_an_answer_the_length_of_the_questions_tells(stand: Stand) -> None:
    (plan,) = plans_of(stand, PRICED)

    assert plan.asking.by == "by the length of the questions"
    assert plan.asking.output_tokens == 3 * 1000
    length = plan.asking.input_tokens
    expected = length * 1e-5 + 3 * 1000 * 1e-4 + 3 * 0.01
    assert plan.asking.cost_usd == pytest.approx(expected, rel=0.01)
    (tally,) = stand.predict(PRICED)
    assert tally.estimated_usd == pytest.approx(plan.asking.cost_usd)


def test_earlier_answers_tell_what_the_next_ones_will_cost(stand: Stand) -> None:
    (paid,) = stand.predict(PRICED)
    again = Launch("again", Mode.FRESH)

    (plan,) = plans_of(stand, PRICED, launch=again)

    assert plan.asking.by == "by 3 earlier answers"
    assert plan.asking.output_tokens == paid.output_tokens
    assert plan.asking.cost_usd == pytest.approx(paid.cost_usd)
    (tally,) = stand.predict(PRICED, launch=again)
    assert tally.estimated_usd == pytest.approx(plan.asking.cost_usd)


def test_verdicts_cost_what_the_judge_took_before_and_not_what_another_one_did(
    stand: Stand,
) -> None:
    evaluate(stand)
    again = Launch("again", Mode.FRESH)
    other = stand.settings.overridden({"judge": {"model": "demo/average"}})

    (plan,) = plans_of(stand, STRONG, launch=again)
    (by_another,) = plans_of(stand, STRONG, launch=again, settings=other)

    spent = sum(one.usage.output_tokens or 0 for one in stand.judgements())
    assert plan.judging.by == "by 3 earlier verdicts"
    assert plan.judging.output_tokens == spent
    assert by_another.judging.by == "by the length of the questions"
    assert by_another.judging.output_tokens == 3 * 1000


def test_what_nobody_knows_the_price_of_is_not_called_free(stand: Stand) -> None:
    (plan,) = plans_of(stand, STRONG)

    assert plan.asking.cost_usd is None
    assert plan.warnings == ("demo/strong: no price is known, so its answers are not in the cost.",)


@pytest.mark.parametrize(
    ("judge", "verdicts"),
    [
        ({"also": ["demo/average"]}, 6),
        ({"rules": "only"}, 0),
        ({"rules": "first"}, 3),
        ({"model": None, "rules": "only"}, 0),
    ],
)
def test_every_judge_that_is_a_model_is_asked_about_every_answer(
    stand: Stand, judge: dict[str, Any], verdicts: int
) -> None:
    settings = stand.settings.overridden({"judge": judge})

    (plan,) = plans_of(stand, STRONG, settings=settings)

    assert plan.judging.calls == verdicts


def test_without_judging_there_are_no_verdicts(stand: Stand) -> None:
    ask(stand)

    (plan,) = plans_of(stand, STRONG, judging=False)

    assert plan.judging.calls == 0


def test_that_nobody_could_judge_is_a_warning(stand: Stand) -> None:
    settings = stand.settings.overridden({"judge": {"model": None}})

    (plan,) = plans_of(stand, STRONG, settings=settings)

    assert any("need a judge" in warning for warning in plan.warnings)


def test_a_judge_that_no_gateway_lists_is_missed_before_anybody_is_paid(stand: Stand) -> None:
    settings = stand.settings.overridden({"judge": {"model": "demo/nobody"}})

    with pytest.raises(RunError, match="demo/nobody is in no gateway's list"):
        plans_of(stand, STRONG, settings=settings)


def test_a_model_that_can_not_be_asked_does_not_keep_others_from_being_planned(
    stand: Stand,
) -> None:
    searching = a_model("demo/average", web_search=True)
    settings = stand.settings.overridden({"experiment": "web_search"})

    strong, average = plans_of(stand, STRONG, searching, settings=settings)

    assert strong.why_not == "demo/strong is not asked: its gateway lists no web search."
    assert strong.asking.calls == 0
    assert (average.why_not, average.asking.calls) == (None, 3)


def test_where_nothing_failed_nothing_is_asked_again(stand: Stand) -> None:
    evaluate(stand)

    (plan,) = plans_of(stand, STRONG, launch=Launch("next").for_failed())

    assert plan.why_not == "demo/strong: nothing failed in run old."
    assert (plan.asking.calls, plan.judging.calls) == (0, 0)


def test_earlier_answers_of_a_model_that_can_not_be_asked_are_still_judged(stand: Stand) -> None:
    ask(stand)

    (plan,) = plans_of(stand, STRONG, launch=Launch("next", continue_run="nowhere"))
    (other,) = plans_of(stand, STRONG, settings=set_here(stand, test_filter="nothing"))

    assert str(plan.why_not).startswith("demo/strong has no run nowhere")
    assert str(other.why_not).startswith("Nothing to ask demo/strong")
    assert (plan.judging.calls, other.judging.calls) == (0, 3)


def test_a_gateway_without_its_key_is_told_of_its_models_alone(stand: Stand) -> None:
    gateways = [
        {"name": "demo", "kind": "demo", "base_url": stand.gateway.base_url},
        {"name": "router", "kind": "openrouter"},
    ]
    settings = stand.settings.overridden({"gateways": gateways})

    strong, routed = plans_of(
        stand, STRONG, a_model("vendor/name", gateway="router"), settings=settings
    )

    assert strong.why_not is None
    assert "OPENROUTER_API_KEY" in str(routed.why_not)


def test_models_that_open_a_run_together_draw_on_one_budget(stand: Stand) -> None:
    cents = Prices(prompt=0, completion=0, request=0.5)
    both = [STRONG.model_copy(update={"prices": cents}), WEAK.model_copy(update={"prices": cents})]
    settings = stand.settings.overridden(
        {"budget": {"usd_per_run": 2, "usd_per_model": 2, "usd_per_day": 9}}
    )

    checks = check_budgets(plans_of(stand, *both, settings=settings, judging=False))

    needed = {(one.purpose, one.model): one.needed_usd for one in checks}
    assert needed == pytest.approx(
        {
            ("day", None): 3.0,
            ("run", None): 3.0,
            ("model", "demo/strong"): 1.5,
            ("model", "demo/weak"): 1.5,
        }
    )
    assert [one.purpose for one in checks if not one.holds] == ["run"]


def test_what_a_run_has_cost_already_is_no_longer_there_for_it(stand: Stand) -> None:
    dear = a_model("demo/strong", prices=Prices(prompt=0, completion=0, request=1))
    tight = {"concurrency": {"num_workers": 1}, "budget": {"usd_per_run": 2, "usd_per_day": 9}}
    settings = stand.settings.overridden(tight)
    stand.predict(dear, launch=Launch("old"), settings=settings)

    (plan,) = plans_of(stand, dear, settings=settings, judging=False)

    assert {(one.purpose, one.run_id): one.left_usd for one in plan.limits} == {
        ("day", None): 7.0,
        ("run", "old"): 0.0,
    }
    assert plan.asking.cost_usd == pytest.approx(1.0)


@pytest.fixture
def coding(tmp_path: Path) -> Iterator[Stand]:
    """Three questions and two tasks, the second of which an AI grader reviews."""
    write_task(tmp_path / "tasks", "001-numbers/007-number", 7)
    write_task(tmp_path / "tasks", "001-numbers/008-number", 8, review=["It is short.", "Clean."])
    suites = [
        {"name": "sample", "path": "questions.jsonl"},
        {"name": "coding", "kind": "coding", "path": "tasks"},
    ]
    items = load_benchmark(settings_in(tmp_path, suites=suites)).items
    with DemoGateway(tuple(items.values())) as gateway:
        yield Stand(tmp_path, gateway, suites=suites)


def test_code_is_graded_for_nothing_unless_a_model_reviews_it(coding: Stand) -> None:
    reviewed = coding.settings.overridden({"coding": {"reviewer": "demo/judge"}})
    only_code = set_here(coding, test_filter="^coding/")

    (plain,) = plans_of(coding, STRONG)
    (more,) = plans_of(coding, STRONG, settings=reviewed)
    (code,) = plans_of(coding, STRONG, settings=only_code)

    assert [one.asking.calls for one in (plain, more, code)] == [5, 5, 2]
    assert [one.judging.calls for one in (plain, more, code)] == [3, 5, 0]


def test_each_suite_costs_what_it_has_cost_before_and_what_is_new_goes_by_its_length(
    coding: Stand,
) -> None:
    (unknown,) = plans_of(coding, PRICED, settings=set_here(coding, suites=["coding"]))
    (paid,) = coding.predict(PRICED, settings=set_here(coding, suites=["sample"]))
    again = Launch("again", Mode.FRESH)

    (code,) = plans_of(coding, PRICED, settings=set_here(coding, suites=["coding"]))
    (both,) = plans_of(coding, PRICED, launch=again)

    assert code.asking == unknown.asking
    assert both.asking.by == "by 3 earlier answers and by the length of the questions"
    expected = (unknown.asking.cost_usd or 0.0) + paid.cost_usd
    assert both.asking.cost_usd == pytest.approx(expected)
    (tally,) = coding.predict(PRICED, launch=again)
    assert tally.estimated_usd == pytest.approx(expected)


def test_free_verdicts_of_steps_are_not_what_a_judge_costs(coding: Stand) -> None:
    coding.predict(PRICED, settings=set_here(coding, suites=["sample"]))
    judge = JUDGE.model_copy(update={"prices": Prices(prompt=1e-5, completion=1e-4)})
    graded = a_judgement(
        a_prediction("007-number", run_id="before", suite="coding"), graded_by=STEPS, usage=FREE
    )
    coding.journal.write_whole(JUDGED, PRICED.id, "before", "steps", records=[graded])

    (tally,) = coding.judge(PRICED.id, by=judge)

    assert tally.estimated_usd is not None
    assert tally.estimated_usd > 3 * 1000 * 1e-4


def test_of_many_requests_alike_some_are_compared_and_of_changed_ones_all(tmp_path: Path) -> None:
    old = [a_question(f"q{number}") for number in range(400)]
    new = [
        a_question(f"q{n}", question=f"Changed {n}") if n % 100 == 99 else old[n]
        for n in range(400)
    ]
    before, after = a_benchmark(*old), a_benchmark(*new)
    earlier = a_run("old", plan=before.items, benchmark_version=before.version.benchmark_version)
    asked = [
        a_prediction(item.id, run_id="old", request_hash=item.question)
        for item in before.items.values()
    ]
    journal = a_journal(tmp_path, earlier, *asked, *map(a_judgement, asked), benchmark=before)
    version = after.version.benchmark_version
    run = a_run("new", plan=after.items, benchmark_version=version, carry_from=("old",))
    built: list[ItemKey] = []

    def request_hash(reply: ReplyKey) -> str:
        built.append(reply.key)
        return after.items[reply.key].question

    pending = Pending(run.plan, range(run.planned))
    found = find_reusable(journal, run, pending, request_hash, Versions(journal, after))

    assert set(range(400)) - found.replies == {99, 199, 299, 399}
    assert len(built) == ENOUGH_ALIKE + 4


def test_a_gateway_is_asked_for_its_list_only_where_the_judge_is_not_known(stand: Stand) -> None:
    (plan,) = plans_of(stand, STRONG)

    assert plan.judging.calls == 3
    assert stand.gateway.requests.total() == 0
    assert JUDGE.id in stand.settings.judge.models


def test_the_command_prints_the_plan_and_leaves_the_project_as_it_was(tmp_path: Path) -> None:
    project = a_project(tmp_path)
    before = tree(project)

    told = call(project, "evals run --dry-run --max-samples 2")
    parsed = call(project, "evals run --dry-run --max-samples 2 --json")

    assert (told.returncode, parsed.returncode) == (0, 0), told.stderr + parsed.stderr
    assert "Nobody was asked, and nothing was changed." in told.stdout
    assert json.loads(parsed.stdout)["total"]["calls"] == 2 * 3
    assert tree(project) == before
