"""Results of zenmux-benchmark become runs: all of it once, and with the same numbers."""

import json
import math
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from eval_pipeline.interop.zenmux.convert import compared
from eval_pipeline.interop.zenmux.load import OWN
from eval_pipeline.interop.zenmux.read import ImportFolderError, ResultsFolder, results_folders
from eval_pipeline.journal import JUDGED, PREDICTIONS, SIGHTINGS, Journal
from eval_pipeline.records.run import Scope
from eval_pipeline.results.queries import query, rows
from eval_pipeline_tests.builders import a_question
from eval_pipeline_tests.zenmux_results import (
    IDS,
    JUDGE,
    MODEL,
    Project,
    Results,
    a_failure,
    an_entry,
    judged,
    metadata,
    not_judged,
    usual,
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results", IDS)


def test_answers_failures_tokens_times_and_ids_land_in_duckdb(
    project: Project, results: Results
) -> None:
    results.add(MODEL, *usual())

    taken, left_out = project.take(results.root)

    assert not left_out
    assert [(one.predictions, one.judgements, one.is_new) for one in taken] == [(3, 2, True)]
    one, two, three = project.rows("from predictions order by item_id")
    assert (one["model"], one["answer"], one["outcome"]) == (MODEL, "Answer: 42", "ok")
    assert (one["input_tokens"], one["output_tokens"]) == (100, 200)
    assert (one["reasoning_tokens"], one["cached_tokens"]) == (150, 10)
    assert (one["first_token_s"], one["generation_s"], one["latency_s"]) == (1.5, 2.5, 4.0)
    assert (one["generation_id"], two["generation_id"]) == ("gen-1", "gen-2")
    assert (one["cost_usd"], one["served_by"]) == (None, "azure")
    assert (three["outcome"], three["is_result"], three["answer"]) == ("rate_limited", False, None)
    assert "slow down" in three["error"]
    right, wrong = project.rows("from judged order by item_id")
    assert (right["judge"], right["score"], right["confidence"]) == (JUDGE, 1.0, 0.9)
    assert (wrong["score"], wrong["extracted_answer"], wrong["latency_s"]) == (0.0, "41", 0.7)
    assert json.loads(right["raw_reply"])["judge_generation_id"] == "judge-gen-1"


def test_importing_twice_changes_nothing(project: Project, results: Results) -> None:
    results.add(MODEL, *usual())
    project.take(results.root)
    before = project.journal.snapshot()

    taken, _ = project.take(results.path)

    assert [one.is_changed for one in taken] == [False]
    assert project.journal.snapshot() == before


def test_an_import_that_was_interrupted_is_finished_by_the_next(
    project: Project, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    results.add(MODEL, *usual())
    write = Journal.write_whole

    def interrupted(self: Journal, stream: Any, *parts: str, records: Any) -> None:
        if stream is JUDGED:
            raise KeyboardInterrupt
        write(self, stream, *parts, records=records)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Journal, "write_whole", interrupted)
        project.take(results.root)

    (taken,), _ = project.take(results.root)
    assert (taken.is_new, taken.predictions, taken.judgements) == (False, 0, 2)
    assert len(list(project.journal.read(PREDICTIONS))) == 3


def test_what_was_repaired_there_is_taken_when_it_is_imported_again(
    project: Project, results: Results
) -> None:
    answers, verdicts = usual()
    verdicts["q2"] = not_judged(answers["q2"])
    results.add(MODEL, answers, verdicts)
    project.take(results.root)
    answers["q3"] = an_entry(MODEL, "At last: 42")
    verdicts |= {
        "q2": judged(answers["q2"], correct=False),
        "q3": judged(answers["q3"], correct=True),
    }
    results.add(MODEL, answers, verdicts)

    (taken,), _ = project.take(results.root)

    assert (taken.is_new, taken.predictions, taken.judgements) == (False, 1, 2)
    found = project.rows("select item_id, outcome, answer from predictions order by item_id")
    assert found[2] == {"item_id": "q3", "outcome": "ok", "answer": "At last: 42"}
    assert [one["score"] for one in project.rows("from judged order by item_id")] == [1, 0, 1]


def test_a_judge_that_failed_gives_no_score(project: Project, results: Results) -> None:
    answers, verdicts = usual()
    verdicts["q1"] = not_judged(answers["q1"], "Error code: 503 - unavailable")
    results.add(MODEL, answers, verdicts)

    project.take(results.root)

    failed, wrong = project.rows("from judged order by item_id")
    assert (failed["score"], failed["outcome"]) == (None, "server_error")
    assert wrong["score"] == 0.0


def test_a_verdict_on_another_answer_is_left_out(project: Project, results: Results) -> None:
    answers, verdicts = usual()
    verdicts["q1"] = judged({**answers["q1"], "response": "An older answer"}, correct=True)
    results.add(MODEL, answers, verdicts)

    (taken,), left_out = project.take(results.root)

    assert taken.judgements == 1
    assert "1 verdicts are on other answers" in left_out[0]


def test_a_damaged_file_is_named_and_the_rest_is_imported(
    project: Project, results: Results
) -> None:
    results.add(MODEL, *usual())
    results.add("demo/weak", *usual())
    (damaged,) = (results.path / "predictions").glob("*weak*")
    damaged.write_bytes(damaged.read_bytes()[:300])

    taken, left_out = project.take(results.root)

    # What its judged file tells of the answers is not lost.
    assert [(one.model, one.predictions) for one in taken] == [(MODEL, 3), ("demo/weak", 3)]
    assert len(left_out) == 1
    assert damaged.name in left_out[0]
    assert "It is damaged" in left_out[0]


def _made(path: Path, make: Callable[[Path], object]) -> Path:
    path.unlink()
    make(path)
    return path


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.write_text("[]"), "no JSON object"),
        (lambda path: path.write_text("[" * 100_000), "nested too deeply"),
        (lambda path: path.write_text('{"predictions": 7}'), "predictions are no JSON object"),
        (lambda path: path.write_text('{"a": ' + "9" * 5000 + ', "b"}'), "damaged"),
        (lambda path: path.symlink_to("/etc/hostname"), "links are not followed"),
        (os.mkfifo, "no regular file"),
        (lambda path: path.mkdir(), "no regular file"),
        (lambda path: os.truncate(_touched(path), 10**10), "10,000 MB"),
    ],
)
def test_files_that_are_no_results_are_told_in_a_sentence(
    project: Project, results: Results, make: Callable[[Path], object], said: str
) -> None:
    results.add(MODEL, usual()[0])
    (path,) = (results.path / "predictions").glob("*.json")
    _made(path, make)

    taken, left_out = project.take(results.root)

    assert not taken
    assert said in left_out[0]


def _touched(path: Path) -> Path:
    path.touch()
    return path


def test_values_of_the_wrong_kind_are_left_out_and_the_answer_is_kept(
    project: Project, results: Results
) -> None:
    odd = an_entry(
        MODEL,
        "Half a character: \ud83d, and a whole one: \U0001f600",
        usage={"completion_tokens": 10**30, "prompt_tokens": -1, "completion_tokens_details": 5},
        performance={"first_token_latency_ms": math.nan, "generation_time_ms": "soon"},
        generation_id=["no", "text"],
    )
    verdict = judged(odd, correct=True, confidence=10**9)
    more: dict[str, Any] = {
        "q2": 7,
        "q3": {"response": None},
        "x" * 999: an_entry(MODEL),
        "": an_entry(MODEL),
    }
    results.add(MODEL, {"q1": odd, **more}, {"q1": verdict})

    (taken,), (left_out,) = project.take(results.root)

    assert (taken.predictions, taken.judgements) == (1, 1)
    assert left_out.endswith(": 4 entries in it are no answers.")
    (one,) = project.rows("from predictions")
    assert one["answer"] == "Half a character: \ufffd, and a whole one: \U0001f600"
    names = ("input_tokens", "output_tokens", "reasoning_tokens", "latency_s", "generation_id")
    assert [one[name] for name in names] == [None] * 5
    (two,) = project.rows("from judged")
    assert (two["score"], two["confidence"]) == (1.0, None)


def test_files_without_metadata_say_in_their_entries_whose_they_are(
    project: Project, results: Results
) -> None:
    results.add(MODEL, *usual(), old=True)

    (taken,), left_out = project.take(results.root)

    assert (taken.model, taken.predictions, taken.judgements) == (MODEL, 3, 2)
    assert not left_out
    assert {one["judge"] for one in project.rows("from judged")} == {"unknown/judge"}


def test_a_file_name_tells_the_model_only_where_a_list_says_what_it_means(
    project: Project, results: Results
) -> None:
    answers = {"q1": {"response": "Answer: 42"}}
    results.add("a/b_c:d", answers, old=True)
    results.add("e/f:g", answers, old=True)
    del results.models["e/f:g"]
    results.add("a/b_c:d", answers, old=True)

    taken, left_out = project.take(results.root)

    assert [one.model for one in taken] == ["a/b_c:d"]
    assert "Nothing in it says of which model it is." in left_out[0]


@pytest.mark.parametrize("name", ["no-vendor", "a/..b:c", "a/b c:d", "a/" + "b" * 200])
def test_a_name_that_can_be_no_model_here_is_left_out_as_it_is(
    project: Project, results: Results, name: str
) -> None:
    said = {"evaluation_metadata": {"model_identifier": name}, "predictions": usual()[0]}
    (results.path / "predictions" / "hle_x.json").write_text(json.dumps(said))

    taken, left_out = project.take(results.root)

    assert not taken
    assert "cannot be used as the id of a model" in left_out[0]


def test_a_judge_whose_name_can_be_none_is_unknown(project: Project, results: Results) -> None:
    results.add(MODEL, *usual())
    (file,) = (results.path / "judged").iterdir()
    file.write_text(file.read_text().replace(JUDGE, "\\u001b[2J " * 99))

    (taken,), (left_out,) = project.take(results.root)

    assert taken.judgements == 2
    assert "cannot be used as the id of a model" in left_out
    assert project.rows("select distinct judge from judged") == [{"judge": "unknown/judge"}]


def test_a_model_that_failed_as_a_whole_has_a_run_without_answers(
    project: Project, results: Results
) -> None:
    failed = {"model_identifier": MODEL, "predictions_file": None, "error": "No such endpoint"}
    results.summary(failed)

    (taken,), _ = project.take(results.root)

    assert (taken.model, taken.planned, taken.predictions) == (MODEL, 3, 0)
    assert taken.error == project.run().parameters["failed_there"] == "No such endpoint"


def test_runs_belong_to_the_suite_of_the_settings_that_has_their_questions(
    project: Project, results: Results
) -> None:
    results.add(MODEL, *usual())

    (taken,), _ = project.take(results.root)

    run = project.run()
    assert taken.suite == "sample"
    assert [key.item_id for key in run.plan] == list(IDS)
    assert (run.scope, run.simulated, run.plan_filter.text_only) == (Scope.FULL, False, True)
    assert run.parameters == {"imported_from": "zenmux-benchmark", "temperature": 0.0}
    assert f"{run.opened_at:%Y%m%d_%H%M%S}" == results.stamp
    assert run.run_id[14] == "5"  # where ids of Dagster's runs have a 4
    (seen,) = project.journal.read(SIGHTINGS)
    assert (seen.model.id, seen.selected, seen.model.context_length) == (MODEL, False, 128000)


def test_questions_that_nobody_knows_get_a_suite_of_their_own(
    project: Project, tmp_path: Path
) -> None:
    ids = ["u1", "u2", "u3"]
    large = Results(tmp_path / "results", ids)
    answers = {one: an_entry(MODEL) for one in ids}
    verdicts = {one: judged(entry, correct=True) for one, entry in answers.items()}
    large.add(MODEL, answers, verdicts)
    small = Results(tmp_path / "results", ids[:1], "20250930_000000")
    small.add("demo/weak", {"u1": an_entry("demo/weak")})

    taken, left_out = project.take(tmp_path / "results")

    assert [one.suite for one in taken] == [OWN, OWN]
    assert not left_out
    assert project.run("demo/weak").benchmark_version == project.run().benchmark_version
    assert project.run("demo/weak").scope is Scope.FILTERED
    (row,) = project.rows(f"from metrics where slice = 'all' and model = '{MODEL}'")
    assert (row["judged"], row["accuracy"]) == (3, 1.0)
    # What is evaluated here is still what the settings say.
    (current,) = project.rows("select suite from benchmark_versions where is_current")
    assert current == {"suite": "sample"}


def test_folders_that_hold_no_results_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportFolderError, match="is no folder"):
        results_folders(tmp_path / "missing")
    with pytest.raises(ImportFolderError, match="has no results"):
        results_folders(tmp_path)


def test_a_folder_that_tells_no_time_is_named_and_the_others_are_imported(
    project: Project, results: Results
) -> None:
    results.add(MODEL, *usual())
    (results.root / "a copy" / "predictions").mkdir(parents=True)

    (taken,), (left_out,) = project.take(results.root)

    assert (taken.model, taken.predictions) == (MODEL, 3)
    assert left_out.startswith("a copy/: Neither its name")


QUESTIONS = 437


def _theirs(verdicts: Mapping[str, Mapping[str, Any]], total: int | None) -> list[float]:
    """Their numbers, computed as the README and HLE's code say; without a total, moderately."""
    said = [one["judge_response"] for one in verdicts.values() if "judge_response" in one]
    said = [one for one in said if one["reasoning"].strip()]
    correct = np.array(["yes" in one["correct"] for one in said])
    confidence = np.array([one["confidence"] for one in said]) / 100
    order = np.argsort(confidence)
    confidence, correct, n = confidence[order], correct[order], total or len(said)
    accuracy = 100 * correct.sum() / n
    half = 1.96 * math.sqrt(accuracy * (100 - accuracy) / n)
    bins = [[i * 100, (i + 1) * 100] for i in range(len(confidence) // 100)]
    bins[-1][1] = len(confidence)
    error = sum(
        (end - start)
        / len(confidence)
        * (confidence[start:end].mean() - correct[start:end].mean()) ** 2
        for start, end in bins[:-1]
    )
    return [round(float(one), 2) for one in (accuracy, half, 100 * math.sqrt(error))]


ASKED = [f"m{(number * 100) % QUESTIONS:03}" for number in range(QUESTIONS)]
"""The ids in the order of the data set, which is none of theirs."""


def _many(model: str) -> dict[str, dict[str, Any]]:
    """Verdicts with few confidences, as models state them: bins are cut between equal ones."""
    entry, chance = partial(an_entry, model), Random(model)
    return {
        one: judged(
            entry(f"It is {one}."),
            correct=chance.random() < 0.3,
            confidence=chance.choice([60, 80, 90, 95, 100]),
        )
        for one in ASKED
    }


def test_the_numbers_are_theirs_to_the_second_decimal_strict_and_moderate(tmp_path: Path) -> None:
    questions = [a_question(one) for one in ASKED]
    project = Project(tmp_path, questions=questions)
    results = Results(tmp_path / "results", [one.id for one in questions])
    whole, part = _many("a/whole:x"), _many("a/in_part:x")
    for number in range(9):
        part[f"m{number:03}"] = a_failure("a/in_part:x")
    part["m100"] = not_judged(part["m100"])
    results.add("a/whole:x", whole, whole)
    results.add("a/in_part:x", part, part)
    strict, moderate = _theirs(whole, QUESTIONS), _theirs(part, None)
    names = ("accuracy", "confidence_interval", "calibration_error")
    file = f"results/{results.stamp}/predictions/hle_a_in_part_x_{results.stamp}.json"
    results.summary(
        {"model_identifier": "a/whole:x", "metrics": dict(zip(names, strict, strict=True))},
        # So a repair there calls it.
        {"model_identifier": "a/in/part:x", "predictions_file": file,
         "metrics": dict(zip(names, moderate, strict=True))},
    )  # fmt: skip

    project.take(results.root)

    project.warehouse.publish()
    with project.warehouse.reading() as db:
        found = {one.model: one for one in compared(db, ResultsFolder(results.path))}
        given = {"run_id": None, "models": None, "experiment": None, "judge": None}
        shown = {"slice": "all", "strict": True}
        complete = rows(query(db, "summaries/metrics_of_runs", {**given, **shown}))
    assert list(found["a/whole:x"].here) == strict
    assert list(found["a/in_part:x"].here) == moderate
    assert all(one.same for one in found.values())
    # As there, only what is complete is in the strict numbers; the corrected ones stand beside.
    (row,) = complete
    assert (row["model"], row["judged"]) == ("a/whole:x", QUESTIONS)
    assert row["accuracy_low"] < row["accuracy"] < row["accuracy_high"]
    assert round(100 * row["calibration_error"], 2) != strict[2]
    (row,) = project.rows("from metrics where slice = 'all' and not complete")
    assert row["incomplete_because"] == "9 failed (timeout), 1 not judged (server_error)"


def test_metadata_of_the_judged_file_alone_is_enough(project: Project, results: Results) -> None:
    results.add(MODEL, *usual())
    for path in (results.path / "predictions").iterdir():
        path.unlink()

    (taken,), left_out = project.take(results.root)

    assert (taken.model, taken.predictions, taken.judgements, left_out) == (MODEL, 3, 2, [])
    assert metadata(MODEL)["model_identifier"] == MODEL
