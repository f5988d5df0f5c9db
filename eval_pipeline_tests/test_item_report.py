"""One item in full: `evals show`, with the prompt made again by the code that asks."""

import json
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.journal import PREDICTIONS, SIGHTINGS, Journal
from eval_pipeline.records.base import now
from eval_pipeline.records.item import ItemKey
from eval_pipeline.records.model import Model, Sighting
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_journal,
    a_judgement,
    a_model,
    a_prediction,
    a_question,
    a_run,
    a_task,
    graded_code,
    settings_in,
)
from eval_pipeline_tests.project import call
from eval_pipeline_tests.stand import STRONG, WEAK, Stand

PROMPT = "Think, then answer."
SENT = "What is 6 times 7? (q1)"


def see(journal: Journal, *models: Model) -> None:
    seen = [Sighting(model=model, selected=True, seen_at=now()) for model in models]
    journal.write_whole(SIGHTINGS, "1", records=seen)


def shown(project: Path, run: str = "run-1", item: str = "q1", options: str = "") -> str:
    done = call(project, f"evals show {run} {item} {options}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def found(project: Path, run: str = "run-1", item: str = "q1") -> dict[str, Any]:
    report = json.loads(shown(project, run, item, "--json"))
    assert isinstance(report, dict)
    return report


def section(page: str, heading: str) -> str:
    """The text under a heading."""
    return page.partition(f"== {heading} ==\n")[2].partition("\n\n== ")[0].rstrip("\n")


@pytest.fixture
def asked(tmp_path: Path, gateway: DemoGateway) -> Stand:
    """Two models, one without a system role, asked and judged for real."""
    experiments = {"default": {"system_prompt": "prompt.txt", "extra": {"seed": 1}}}
    (tmp_path / "prompt.txt").write_text(PROMPT)
    stand = Stand(tmp_path, gateway, experiments=experiments, plan={"samples": 2})
    see(stand.journal, STRONG, WEAK)
    stand.predict(STRONG, WEAK)
    stand.judge("demo/strong")
    return stand


def test_an_item_is_shown_from_its_prompt_to_its_verdict(asked: Stand) -> None:
    page = shown(asked.settings.root, "demo/strong@run-1")

    replies = [one for one in asked.journal.read(PREDICTIONS, "demo/strong") if one.item_id == "q1"]
    assert section(page, "Prompt: system") == PROMPT
    assert section(page, "Prompt: user") == SENT
    assert section(page, "Reference answer (exactMatch)") == "42"
    assert section(page, "Rationale") == "Counting."
    assert len(replies) == 2
    for one in replies:
        assert section(page, f"Reply (sample {one.sample})") == one.answer
        assert f"generation id: {one.generation_id}" in section(
            page, f"Facts (sample {one.sample})"
        )
    assert "served by: Simulated" in section(page, "Facts (sample 1)")
    assert "demo/strong (simulated)" in page
    assert "confidence: " in page
    assert "Not exactly as it was sent" not in page


def test_the_prompt_is_that_of_every_sample_and_of_models_without_a_system_role(
    asked: Stand,
) -> None:
    strong = found(asked.settings.root, "demo/strong@run-1")
    weak = found(asked.settings.root, "demo/weak@run-1")

    assert [one["prompt_is_exact"] for one in strong["replies"]] == [True, True]
    assert [one["prompt_is_exact"] for one in weak["replies"]] == [True, True]
    assert weak["prompt"] == [{"role": "user", "content": f"{PROMPT}\n\n{SENT}"}]


def test_what_programs_read_is_named_like_the_tables(asked: Stand) -> None:
    report = found(asked.settings.root, "demo/strong@run-1")
    (verdict,) = report["replies"][0]["verdicts"]

    assert (report["run_id"], report["item_id"], report["suite"]) == ("run-1", "q1", "sample")
    assert (report["question"], report["answer"]) == (SENT, "42")
    assert report["parameters"]["extra"] == {"seed": 1}
    assert report["replies"][0]["prediction"]["outcome"] == "ok"
    assert verdict["judge"] == "demo/judge"
    assert verdict["score"] in (0, 1)


def test_only_the_wanted_sample_is_shown(asked: Stand) -> None:
    page = shown(asked.settings.root, "demo/strong@run-1", "q1", "--sample 1")
    wrong = call(asked.settings.root, "evals show demo/strong@run-1 q1 --sample 2")

    assert "== Reply (sample 1) ==" in page
    assert "== Reply (sample 0) ==" not in page
    assert wrong.returncode == 2
    assert "There is no sample 2: that run has 0 to 1." in wrong.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("prompt", "the system prompt"),
        ("temperature = 1.0", "the temperature"),
        ("max_tokens = 10", "the token limit"),
    ],
)
def test_a_prompt_that_has_changed_since_is_told(asked: Stand, change: str, words: str) -> None:
    root = asked.settings.root
    if change == "prompt":
        (root / "prompt.txt").write_text("Guess.")
    else:
        toml = (root / "eval_pipeline.toml").read_text()
        name, _, value = change.partition(" = ")
        toml = toml.replace('{"seed" = 1}', f'{{"seed" = 1}}, "{name}" = {value}')
        (root / "eval_pipeline.toml").write_text(toml)

    page = shown(root, "demo/strong@run-1")

    told = section(page, "Prompt")
    assert f"Not exactly as it was sent. What has changed since: {words}." in told


def test_a_model_that_is_described_otherwise_now_is_told(asked: Stand) -> None:
    see(asked.journal, a_model("demo/strong", system_role=False))

    page = shown(asked.settings.root, "demo/strong@run-1")

    assert "how the model is described, or the code" in section(page, "Prompt")


def an_exam(folder: Path) -> Path:
    """Journals made by hand: two suites, code, an outage, and what nobody has asked yet."""
    settings_in(folder)
    first, image = a_question("q1"), a_question("q9", image=f"data:image/png;base64,{'A' * 4000}")
    other, task = a_question("q1", suite="other"), a_task()
    benchmark = a_benchmark(first, image, other, task)
    version = {"benchmark_version": benchmark.version.benchmark_version}
    run = a_run("run-1", "demo/strong", benchmark.items, samples=2, **version)
    gone = a_run("run-2", "demo/gone", benchmark.items, experiment="gone", **version)
    reply = "# Files\n\n## answer.py\n\n```python\nA = 1\n```\n"
    code = a_prediction(task.id, suite="coding", answer=reply)
    error = a_prediction(
        "q9", outcome="server_error", answer=None, error="\x1b[31mDown[/red]", attempts=5
    )
    verdict = a_judgement(code, 0.0, reason="tests: empty", code=graded_code(), graded_by="steps")
    journal = a_journal(folder / "data", run, gone, code, error, verdict, benchmark=benchmark)
    see(journal, STRONG)
    return folder


@pytest.fixture(scope="module")
def exam(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return an_exam(tmp_path_factory.mktemp("exam"))


def test_code_is_shown_with_its_files_its_steps_and_their_output(exam: Path) -> None:
    page = shown(exam, "run-1", "001-words/001-sum")

    assert section(page, "File answer.py (sample 0)") == "A = 1"
    assert section(page, "Reference file answer.py") == "def total() -> int:\n    return 42"
    assert "graded by: steps" in section(page, "Verdict of demo/judge (sample 0): wrong")
    told = section(page, "Step tests (sample 0): failed")
    assert "E  1 != 2" in told
    assert "passed adds" in told
    assert "FAILED empty" in told


def test_an_error_is_shown_in_the_words_of_the_server_which_nobody_obeys(exam: Path) -> None:
    page = shown(exam, "run-1", "q9")

    assert section(page, "Error (sample 0)") == "\ufffd[31mDown[/red]"
    assert "requests: 5" in section(page, "Facts (sample 0)")
    assert section(page, "Reply (sample 1)") == "It was not asked yet."


def test_an_image_is_named_and_not_printed(exam: Path) -> None:
    page, report = shown(exam, "run-1", "q9"), shown(exam, "run-1", "q9", "--json")

    assert "[image: image/png, 3.0 kB]" in section(page, "Prompt: user")
    assert json.loads(report)["image"] == "[image: image/png, 3.0 kB]"
    assert "AAAA" not in page + report


def test_a_prompt_that_can_not_be_made_again_leaves_the_question(exam: Path) -> None:
    page = shown(exam, "run-2", "sample/q1")

    assert "the settings no longer have the experiment 'gone'" in section(page, "Prompt")
    assert section(page, "Question") == SENT


def test_a_model_that_nobody_knows_any_more_leaves_the_question(tmp_path: Path) -> None:
    settings_in(tmp_path)
    a_journal(tmp_path / "data", a_run(), a_prediction())

    page = shown(tmp_path)

    assert "the catalog does not have the model" in section(page, "Prompt")
    assert section(page, "Reply") == "42"
    assert section(page, "Verdict") == "There is none yet."


def test_windows_line_ends_are_not_made_visible(tmp_path: Path) -> None:
    settings_in(tmp_path)
    a_journal(tmp_path / "data", a_run(), a_prediction(answer="one\r\ntwo\rthree"))

    assert section(shown(tmp_path), "Reply") == "one\ntwo\ufffdthree"


@pytest.mark.parametrize(
    ("run", "item", "sentence"),
    [
        ("run-1", "q1", "other/q1, sample/q1. For example: evals show run-1 other/q1"),
        ("run-1", "q8", "There is no item 'q8' in run run-1; closest: sample/q9"),
        ("run-3", "q1", "There is no run 'run-3'; the latest are "),
        ("run-", "q1", "'run-' may be any of 2 runs (run-1, run-2): name more of its id."),
    ],
)
def test_what_is_not_clear_is_answered_with_what_may_be_meant(
    exam: Path, run: str, item: str, sentence: str
) -> None:
    done = call(exam, f"evals show {run} {item}")

    assert done.returncode == 2
    assert sentence in done.stderr


def test_of_several_models_that_were_asked_one_is_to_be_named(tmp_path: Path) -> None:
    settings_in(tmp_path)
    plan = [ItemKey("sample", "q1")]
    runs = [a_run("run-1", model, plan, opened_at=NOON) for model in ("demo/a", "demo/b")]
    a_journal(tmp_path / "data", *runs, a_prediction(model="demo/b"))

    several = call(tmp_path, "evals show run-1 q1")

    assert several.returncode == 2
    assert (
        "Several models were asked 'q1' in that run: demo/a@run-1, demo/b@run-1. "
        "For example: evals show demo/a@run-1 q1\n" in several.stderr
    )
    assert section(shown(tmp_path, "demo/b@run-1"), "Reply") == "42"
