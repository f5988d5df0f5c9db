"""Runs leave in the format of zenmux-benchmark and come back as they were; what failed goes on."""

import json
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.importing.zenmux.writing import Exporter, ZenmuxExportError
from eval_pipeline.results.runs import find_runs
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.runs import Mode
from eval_pipeline.stages.predict import Launch
from eval_pipeline_tests.builders import (
    a_benchmark,
    a_journal,
    a_judgement,
    a_prediction,
    a_question,
    a_run,
    a_task,
)
from eval_pipeline_tests.project import a_project, call
from eval_pipeline_tests.stand import STRONG, Stand
from eval_pipeline_tests.zenmux_results import (
    MODEL,
    Project,
    Results,
    a_failure,
    an_entry,
    judged,
    not_judged,
    usual,
)

NUMBERS = """
select judged, correct, accuracy, accuracy_low, calibration_error_last_bin_dropped, brier_score,
    mean_confidence, incomplete_because, input_tokens, output_tokens, latency_p50_s
from metrics where slice = 'all'
"""


def exported(project: Warehouse, run: str, target: Path) -> Path:
    project.publish()
    with project.reading() as db:
        return Exporter(db, project.journal).write(find_runs(db, run), target)[0]


def _content(folder: Path) -> dict[str, Any]:
    """The entries of all files, by file."""
    found = {path.name: json.loads(path.read_text()) for path in folder.rglob("*hle_*.json")}
    names = ("predictions", "judged_predictions")
    return {
        file: next(content[name] for name in names if name in content)
        for file, content in found.items()
    }


def test_what_is_imported_and_exported_again_has_the_same_content(tmp_path: Path) -> None:
    project, results = Project(tmp_path), Results(tmp_path / "results", ("q1", "q2", "q3"))
    answers, verdicts = usual()
    verdicts["q2"] = not_judged(answers["q2"])
    results.add(MODEL, answers, verdicts)
    results.add("a/b:c", {"q1": an_entry("a/b"), "q2": a_failure("a/b", "")})
    project.take(results.root)

    folder = exported(project.warehouse, project.run().run_id, tmp_path / "out")

    before, after = _content(results.path), _content(folder)
    assert folder.name == results.path.name
    for entry in before[f"judged_hle_openai_gpt-5_azure_{results.stamp}.json"].values():
        # Of a judge, tokens are not known, so that its speed is not either.
        entry.get("judge_performance", {}).pop("throughput_tokens_per_second", None)
    for entries in after.values():
        for entry in entries.values():
            entry.get("judge_performance", {}).pop("throughput_tokens_per_second", None)
            entry.get("judge_response", {}).pop("outcome", None)
            entry.pop("outcome", None)
    failed = after[f"judged_hle_openai_gpt-5_azure_{results.stamp}.json"]["q2"]
    assert failed.pop("judge_performance") is not None
    assert failed.pop("judge_generation_id") is None
    after.pop(f"judged_hle_a_b_c_{results.stamp}.json")
    empty = before[f"hle_a_b_c_{results.stamp}.json"]["q2"]
    assert empty.pop("error") == ""
    assert after == before
    ids = json.loads(next(folder.glob("question_ids_*")).read_text())
    assert ids["question_ids"] == ["q1", "q2", "q3"]
    (one, two) = json.loads(next(folder.glob("metrics_summary_*")).read_text())["model_results"]
    assert (one["model_identifier"], one["metrics"]) == ("a/b:c", None)
    assert two["exclusion_reason"] == "incomplete_evaluations, incomplete_judgments"
    statistics = json.loads(next(folder.glob("judge_statistics_*")).read_text())
    assert statistics["model_statistics"][MODEL]["judgments_with_content"] == 1


def test_the_error_of_a_model_that_failed_as_a_whole_goes_there_and_back(tmp_path: Path) -> None:
    results, there = Results(tmp_path / "results", ("q1", "q2", "q3")), Project(tmp_path / "there")
    results.summary({"model_identifier": MODEL, "error": "No such endpoint"})
    there.take(results.root)

    folder = exported(there.warehouse, there.run().run_id, tmp_path / "out")
    back = Project(tmp_path / "back")
    back.take(folder)

    assert back.run().parameters["failed_there"] == "No such endpoint"
    assert there.rows("select parameters from runs") == back.rows("select parameters from runs")


def test_a_run_of_ours_has_the_same_numbers_wherever_it_is_imported(tmp_path: Path) -> None:
    items = [f"q{number}" for number in range(1, 7)]
    questions = [a_question(one) for one in items]
    usage = {"input_tokens": 7, "output_tokens": 11}
    times = {"latency_s": 3.0, "first_token_s": 1.0, "generation_s": 2.0, "usage": usage}
    told = [a_prediction(one, **times) for one in items[:4]]
    thinking = a_prediction("q5", outcome="truncated_thinking", answer=None, usage=usage)
    failed = a_prediction("q6", outcome="timeout", answer=None, error="Nobody answered.")
    own_failing = a_judgement(thinking, 0.0, attempts=0, reason="It was still thinking.")
    verdicts = [
        a_judgement(told[0], 1.0, confidence=0.07),
        a_judgement(told[1], 0.0, confidence=0.855, reason=""),
        a_judgement(told[2], 1.0),
        a_judgement(told[3], None, outcome="undecided", reason="The rules can not tell."),
    ]
    run = a_run(plan=[("sample", one) for one in items])
    benchmark = a_benchmark(*questions)
    run = run.model_copy(update={"benchmark_version": benchmark.version.benchmark_version})
    replies = (*told, thinking, failed)
    journal = a_journal(tmp_path, run, *replies, own_failing, *verdicts, benchmark=benchmark)
    native = Warehouse(tmp_path / "evals.duckdb", journal)
    elsewhere = Project(tmp_path / "elsewhere", questions=questions)

    folder = exported(native, "run-1", tmp_path / "out")
    taken, left_out = elsewhere.take(folder)

    assert not left_out
    assert [(one.predictions, one.judgements) for one in taken] == [(6, 5)]
    with native.reading() as db:
        (there,) = db.sql(NUMBERS).fetchall()
    assert tuple(elsewhere.rows(NUMBERS)[0].values()) == pytest.approx(there)
    assert "1 failed (timeout), 1 not judged (undecided)" in there


@pytest.mark.parametrize(
    ("plan", "changes", "said"),
    [
        ([("sample", "q1")], {"samples": 2}, "asked 2 times"),
        ([("sample", "q1"), ("other", "q1")], {}, "several suites"),
        ([("coding", "001-words/001-sum")], {}, "has no code"),
    ],
)
def test_what_has_no_place_in_that_format_is_refused(
    tmp_path: Path, plan: list[tuple[str, str]], changes: dict[str, Any], said: str
) -> None:
    benchmark = a_benchmark(a_question(), a_question(suite="other"), a_task())
    version = {"benchmark_version": benchmark.version.benchmark_version}
    run = a_run(plan=plan, **version, **changes)
    native = Warehouse(tmp_path / "evals.duckdb", a_journal(tmp_path, run, benchmark=benchmark))

    with pytest.raises(ZenmuxExportError, match=said):
        exported(native, "run-1", tmp_path / "out")

    assert not list((tmp_path / "out").iterdir())


def test_models_that_would_have_the_same_file_are_exported_one_by_one(tmp_path: Path) -> None:
    results, project = Results(tmp_path / "results", ("q1", "q2", "q3")), Project(tmp_path)
    file = results.path / "predictions" / f"hle_a_b_c_d_{results.stamp}.json"
    for number, model in enumerate(("a/b_c:d", "a/b:c_d")):
        results.add(model, usual(model)[0])
        file.rename(file.with_name(f"hle_{number}.json"))
    project.take(results.root)
    run_id = project.run("a/b:c_d").run_id

    with pytest.raises(ZenmuxExportError, match="export each by itself, as a/b_c:d@"):
        exported(project.warehouse, run_id, tmp_path / "out")

    assert exported(project.warehouse, f"a/b_c:d@{run_id}", tmp_path / "out").is_dir()


def _imported(
    stand: Stand, folder: Path, ids: tuple[str, ...], *, is_judged: bool = True
) -> Project:
    """What the strong model was asked elsewhere: the first answer is there, the others failed."""
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


def test_the_commands_import_tell_and_export(tmp_path: Path) -> None:
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
    written = call(project, "evals export zenmux latest out --json")
    tables = call(project, "evals export tables-of-ours -f csv --json")

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
    assert json.loads(written.stdout)["models"][0]["predictions"] == 3
    assert (tmp_path / "out" / results.stamp / "judged").is_dir()
    assert (tables.returncode, (tmp_path / "tables-of-ours" / "runs.csv").is_file()) == (0, True)
