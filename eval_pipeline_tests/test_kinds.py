"""Where questions and coding tasks part ways: what is said to models, and what decides a pass."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.evaluation.requests import RequestBuilder
from eval_pipeline.evaluation.runs import new_run
from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import load_benchmark
from eval_pipeline.suites.kinds import Prompts, graded_alike
from eval_pipeline_tests.builders import a_model, a_question, a_task, settings_in, write_task
from eval_pipeline_tests.convex_stand import CHECKOUT

CODING = {"name": "coding", "kind": "coding", "path": "tasks"}
SAMPLE = {"name": "sample", "path": "questions.jsonl"}


def settings_with_tasks(folder: Path, **changes: Any) -> Settings:
    write_task(folder / "tasks", "001-numbers/007-number", 7)
    (folder / "tasks" / "guidelines.md").write_text("# python\n\n## Style\n\nBe brief.\n")
    return settings_in(folder, **{"suites": [SAMPLE, CODING], **changes})


def prompts_of(settings: Settings, experiment: str = "default") -> Prompts:
    return Prompts.of(settings, settings.experiments[experiment])


def the_task(settings: Settings) -> CodingTask:
    items = load_benchmark(settings).items
    return next(item for item in items.values() if isinstance(item, CodingTask))


def test_without_coding_tasks_the_prompts_hash_is_that_of_the_exam_prompt(tmp_path: Path) -> None:
    prompts = prompts_of(settings_in(tmp_path))

    assert prompts.hash == fingerprint(prompts.exam)


@pytest.mark.parametrize(
    ("experiment", "told"),
    [
        ("default", True),
        ("no_guidelines", False),
        ("web_search", True),
        ("web_search_no_guidelines", False),
    ],
)
def test_an_experiment_says_whether_models_read_the_guidelines(
    tmp_path: Path, experiment: str, told: bool
) -> None:
    settings = settings_with_tasks(tmp_path)

    messages = prompts_of(settings, experiment).messages(the_task(settings), a_model())

    assert ("Be brief." in str(messages)) == told
    assert settings.experiments[experiment].web_search == experiment.startswith("web_search")


def test_an_experiment_may_bring_guidelines_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("# all\n\n## Mine\n\nBe bold.\n")
    settings = settings_with_tasks(tmp_path, experiments={"mine": {"guidelines": "mine.md"}})

    messages = prompts_of(settings, "mine").messages(the_task(settings), a_model())

    assert "Be bold." in str(messages)
    assert "Be brief." not in str(messages)


def test_guidelines_that_are_named_and_not_there_are_missed_before_anybody_is_asked(
    tmp_path: Path,
) -> None:
    settings = settings_with_tasks(tmp_path, experiments={"mine": {"guidelines": "gone.md"}})

    with pytest.raises(SettingsError, match=r"suite 'coding': gone\.md"):
        prompts_of(settings, "mine")


def test_other_guidelines_of_the_default_experiment_make_another_benchmark_version(
    tmp_path: Path,
) -> None:
    settings = settings_with_tasks(tmp_path)
    before = load_benchmark(settings).version
    (tmp_path / "tasks" / "guidelines.md").write_text("# python\n\n## Style\n\nBe long.\n")

    after = load_benchmark(settings).version

    assert after.benchmark_version != before.benchmark_version
    assert after.suites == before.suites
    assert [suite.kind for suite in after.suites] == ["exam", "coding"]


def test_a_runs_parameters_tell_of_coding_prompts_only_if_it_asks_for_code(tmp_path: Path) -> None:
    settings = settings_with_tasks(tmp_path)
    benchmark, prompts = load_benchmark(settings), prompts_of(settings)

    def parameters(test_filter: str, experiment: str = "default") -> set[str]:
        run = new_run(
            "r1",
            RequestBuilder(a_model(), settings.experiments[experiment], prompts),
            benchmark,
            settings.plan.model_copy(update={"test_filter": test_filter}),
            experiment_name=experiment,
        )
        return set(run.parameters)

    usual = {"temperature", "max_tokens", "stream", "extra", "system_prompt_hash", "gateway"}
    assert parameters("^sample") == usual
    assert parameters("") == usual | {"coding_prompt_hash"}
    assert parameters("^sample", "web_search") == usual | {"web_search"}


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (a_question(), a_question(rationale="because"), True),
        (a_question(), a_question(answer="43"), False),
        (a_task(), a_task(question="In other words."), True),
        (a_task(), a_task(grader_version="g2"), False),
        (a_task(), a_question(), False),
    ],
)
def test_a_verdict_holds_as_long_as_what_decides_it_is_the_same(
    one: Any, other: Any, alike: bool
) -> None:
    assert graded_alike(one, other) == alike


def settings_with_decisions(folder: Path, **changes: Any) -> Settings:
    """A checkout's questions beside questions in a file."""
    shutil.copytree(CHECKOUT, folder / "checkout")
    suites = [SAMPLE, {"name": "decisions", "path": "checkout/evals"}]
    return settings_in(folder, **{"suites": suites, **changes})


@pytest.mark.parametrize(("experiment", "told"), [("default", True), ("no_guidelines", False)])
def test_questions_of_a_checkout_are_asked_with_its_guidelines_and_others_without(
    tmp_path: Path, experiment: str, told: bool
) -> None:
    settings = settings_with_decisions(tmp_path)
    guidelines = (CHECKOUT / "runner/models/guidelines.md").read_text().strip()
    prompts, items = prompts_of(settings, experiment), load_benchmark(settings).items

    asked = {key: prompts.messages(items[key], a_model())[-1]["content"] for key in items}

    for key, content in asked.items():
        question = items[key].question
        with_them = f"{guidelines}\n\nThe question:\n\n{question}"
        assert content == (with_them if told and key.suite == "decisions" else question)


def test_an_experiment_brings_its_guidelines_to_questions_that_have_some(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("Be bold.\n")
    settings = settings_with_decisions(tmp_path, experiments={"mine": {"guidelines": "mine.md"}})

    prompts = prompts_of(settings, "mine")

    assert {suite: one.whole for suite, one in prompts.exam_guidelines.items()} == {
        "decisions": "Be bold."
    }


def test_a_suite_of_questions_may_name_its_guidelines(tmp_path: Path) -> None:
    (tmp_path / "ours.md").write_text("# python\n\nBe brief.\n\n# convex\n\nBe bold.\n")
    settings = settings_in(tmp_path, suites=[{**SAMPLE, "guidelines": "ours.md"}])

    prompts = prompts_of(settings)

    assert prompts.exam_guidelines["sample"].whole == "Be brief.\n\nBe bold."
    assert prompts.hash != fingerprint(prompts.exam)
    without = prompts_of(settings, "no_guidelines")
    assert without.hash == fingerprint(without.exam)


def test_a_runs_parameters_tell_of_guidelines_of_questions_only_if_it_asks_with_them(
    tmp_path: Path,
) -> None:
    settings = settings_with_decisions(tmp_path)
    benchmark, prompts = load_benchmark(settings), prompts_of(settings)

    def told(test_filter: str) -> object:
        run = new_run(
            "r1",
            RequestBuilder(a_model(), settings.experiments["default"], prompts),
            benchmark,
            settings.plan.model_copy(update={"test_filter": test_filter}),
            experiment_name="default",
        )
        return run.parameters.get("exam_guidelines_hashes")

    assert told("^sample") is None
    assert told("") == {"decisions": fingerprint(prompts.exam_guidelines["decisions"].whole)}
