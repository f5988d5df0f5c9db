"""Runs imported from zenmux-benchmark: failed items are asked here, and the commands work."""

import json
from pathlib import Path

from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.records.run import Mode
from eval_pipeline_tests.project import a_project, call
from eval_pipeline_tests.stand import STRONG, Stand
from eval_pipeline_tests.zenmux_results import (
    MODEL,
    Project,
    Results,
    a_failure,
    an_entry,
    judged,
)


def _imported(
    stand: Stand, folder: Path, ids: tuple[str, ...], *, is_judged: bool = True
) -> Project:
    """Import results of the strong model: the first answer is there, the others failed."""
    results = Results(folder / "results", ids)
    model = "demo/strong"
    answers = {ids[0]: an_entry(model), **{one: a_failure(model) for one in ids[1:]}}
    verdicts = {one: judged(e, correct=True) if e["response"] else e for one, e in answers.items()}
    results.add(model, answers, verdicts if is_judged else None)
    project = Project(folder, stand.settings)
    project.take(results.root)
    return project


def test_a_fix_asks_only_what_failed_there(stand: Stand, tmp_path: Path) -> None:
    run = _imported(stand, tmp_path, ("q1", "q2", "q3")).run("demo/strong")
    named = {"demo/strong": run.run_id}
    launch = Launch("fixing", Mode.FIX, continue_runs=named)

    (tally,) = stand.predict(STRONG, launch=launch)
    (judging,) = stand.judge("demo/strong", launch=launch)

    assert (tally.planned, tally.failed, sum(stand.gateway.seen.values())) == (2, False, 5)
    found = stand.predictions()
    assert {one.run_id for one in found.values()} == {run.run_id}
    assert found["q1"].answer == "Answer: 42"
    assert {one.outcome for one in found.values()} == {"ok"}
    # Verdicts by two prompts are never mixed: the judge of the settings judges the run as a whole.
    assert judging.planned == 3
    assert [one.planned for one in stand.judge("demo/strong")] == [0]


def test_a_fix_in_another_way_than_it_was_asked_is_refused(stand: Stand, tmp_path: Path) -> None:
    run = _imported(stand, tmp_path, ("q1", "q2", "q3")).run("demo/strong")
    hot = stand.settings.overridden({"experiments": {"default": {"temperature": 1.0}}})
    launch = Launch("fixing", Mode.FIX, continue_runs={"demo/strong": run.run_id})

    (tally,) = stand.predict(STRONG, launch=launch, settings=hot)

    assert "another temperature" in str(tally.stopped)
    assert not stand.gateway.seen


def test_questions_without_text_are_neither_asked_nor_judged(stand: Stand, tmp_path: Path) -> None:
    run = _imported(stand, tmp_path, ("u1", "u2"), is_judged=False).run("demo/strong")
    launch = Launch("fixing", Mode.FIX, continue_runs={"demo/strong": run.run_id})

    (asked,) = stand.predict(STRONG, launch=launch)
    (judging,) = stand.judge("demo/strong", launch=launch)
    (unnamed,) = stand.judge("demo/strong")

    for tally in (asked, judging):
        assert "imported without the text of its questions: name the suite" in str(tally.stopped)
    assert (unnamed.planned, unnamed.stopped) == (0, None)
    assert not stand.gateway.seen


def test_the_command_imports_and_others_show_it(tmp_path: Path) -> None:
    project = a_project(tmp_path, questions=3)
    ids = ("u1", "u2", "u3")
    results = Results(tmp_path / "results", ids)
    answers = {one: an_entry(MODEL) for one in ids}
    verdicts = {one: judged(entry, correct=one == "u1") for one, entry in answers.items()}
    results.add(MODEL, answers, verdicts)
    stated = {"accuracy": 33.33, "confidence_interval": 53.34, "calibration_error": 0.0}
    results.summary({"model_identifier": MODEL, "metrics": stated})
    (results.path / "predictions" / "hle_broken.json").write_text("{")

    done = call(project, "evals import zenmux results")
    again = json.loads(call(project, "evals import zenmux results --json").stdout)
    numbers = call(project, "evals metrics --as-published --json")
    shown = call(project, "evals show latest u1")
    fixed = call(project, f"evals fix {again['runs'][0]['run_id'][:8]}")

    assert done.returncode == 1
    assert "hle_broken.json: It is damaged" in done.stderr
    assert "3 new answers to 3 planned, 3 new verdicts" in done.stdout
    assert "numbers of 1 models; 1 are the same here" in done.stdout
    assert "they are in the suite zenmux-hle" in done.stdout
    assert (again["runs"][0]["predictions"], again["numbers"][0]["same"]) == (0, True)
    assert json.loads(numbers.stdout)["metrics"][0]["as_published"] == stated
    assert "the run was imported from zenmux-benchmark, which asked in its own way" in shown.stdout
    assert fixed.returncode == 2
    assert "name the suite that has them under [[suites]]" in fixed.stderr
