"""A person's word on a failure, which wins over the analyst's: `evals classify`."""

import json
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.analysis.overrides import ClassifyingError, Word, check
from eval_pipeline.cli.options import classifications
from eval_pipeline.journal import RECLASSIFIED, Journal
from eval_pipeline.records.diagnosis import Classification
from eval_pipeline_tests.failing import FAULTY, TASK, a_failed_exam
from eval_pipeline_tests.project import call

RUN = "demo/strong@1111"


@pytest.fixture(scope="module")
def exam(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_failed_exam(tmp_path_factory.mktemp("failed"))


def failures(project: Path) -> dict[str, Any]:
    done = call(project, f"evals failures {RUN} --json")
    return {one["item_id"]: one for one in json.loads(done.stdout)["failures"]}


def test_a_person_s_word_wins_until_it_is_undone(exam: Path) -> None:
    said = call(exam, f"evals classify {RUN} q2 overly-strict --note Rounded.")
    (overridden, page) = failures(exam)["q2"], call(exam, f"evals failures {RUN}").stdout
    again = call(exam, f"evals classify {RUN} q2 AMBIGUOUS_TASK --note Unclear.")
    undone = call(exam, f"evals classify {RUN} q2 --undo")

    assert said.stdout == (
        "sample/q2, run 11111111 of demo/strong: was MODEL_FAULT, "
        "is OVERLY_STRICT (said by a person, the analyst: MODEL_FAULT).\n"
    )
    assert overridden["overridden"]
    assert overridden["classification"] == "OVERLY_STRICT"
    assert overridden["analyst_classification"] == "MODEL_FAULT"
    assert overridden["override_note"] == "Rounded."
    assert "OVERLY_STRICT 1 (1 by people)" in page
    assert "is AMBIGUOUS_TASK (said by a person" in again.stdout
    assert undone.stdout.endswith("is MODEL_FAULT.\n")
    after = failures(exam)["q2"]
    assert (after["classification"], after["overridden"]) == ("MODEL_FAULT", False)
    assert (after["override_note"], after["overridden_at"]) == (None, None)


def test_what_nobody_analysed_can_be_classified_too(exam: Path) -> None:
    done = call(exam, f"evals classify {RUN} {TASK.id} model_fault --note Seen. --json")

    (row,) = json.loads(done.stdout)
    assert (row["classification"], row["analyst"], row["overridden"]) == ("MODEL_FAULT", None, True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            f"{RUN} q2 STRICT --note x",
            "There is no classification 'STRICT'; closest: OVERLY_STRICT",
        ),
        (f"{RUN} q1 MODEL_FAULT --note x", "sample/q1 has not failed in run demo/strong@11111111"),
        (f"{RUN} q3 MODEL_FAULT --note x", "sample/q3 has no answer in run"),
        (f"{RUN} {FAULTY.id} KNOWN_GAP --note x", "has no verdict in run"),
        (f"{RUN} q2 MODEL_FAULT --note x --sample 3", "Sample 3 of sample/q2 has not failed"),
        (f"{RUN} q2 KNOWN_GAP --note x", "sample/q2 has no GAPS.txt"),
        (f"{RUN} q2 MODEL_FAULT", "Say why, for whoever reads it later: --note TEXT"),
        (f"{RUN} q2", "Name either a classification or --undo."),
        (f"{RUN} q2 --undo --sample 0", "nothing is to be undone"),
        ("1111 q2 MODEL_FAULT --note x", "Several models were asked 'q2'"),
    ],
)
def test_what_can_not_be_said_is_refused_and_nothing_is_kept(
    exam: Path, words: str, sentence: str
) -> None:
    journal = Journal(exam / "data" / "journal")
    before = journal.snapshot(RECLASSIFIED)

    done = call(exam, f"evals classify {words}")

    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert journal.snapshot(RECLASSIFIED) == before


def test_a_gap_is_known_only_where_one_is_written_down() -> None:
    known, unknown = {"has_gaps": True}, {"has_gaps": False, "suite": "coding", "item_id": "t"}
    word = Word(Classification.KNOWN_GAP, "As in GAPS.txt.")

    check([known], word)

    with pytest.raises(ClassifyingError, match=r"coding/t has no GAPS\.txt"):
        check([unknown], word)


@pytest.mark.parametrize("note", ["", "  \n"])
def test_a_note_of_nothing_is_none(note: str) -> None:
    with pytest.raises(ClassifyingError, match="Say why"):
        check([{"has_gaps": False}], Word(Classification.MODEL_FAULT, note))


def test_classifications_are_completed_in_any_case() -> None:
    assert classifications("over") == ["OVERLY_STRICT"]
    assert len(classifications("")) == 4
