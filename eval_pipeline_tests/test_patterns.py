"""What failures of a run have in common, found in SQL over a journal made for it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import duckdb

from eval_pipeline.analysis.patterns import MOST, Kind, Pattern, patterns_of
from eval_pipeline.journal import DIAGNOSES
from eval_pipeline.records.coding import Step
from eval_pipeline.records.item import ItemKey
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Run
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.suites.benchmark import Benchmark
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_diagnosis,
    a_journal,
    a_judgement,
    a_prediction,
    a_question,
    a_run,
    a_task,
    graded_code,
)

STRONG, RUN_ID = "demo/strong", "run-1"
BY = (RUN_ID, STRONG, "demo/judge", "v1")
Records = list[Run | Prediction | Judgement]

ALIKE = {
    "Expected N items, got N.": ("Expected 3 items, got 4.", "expected 12 items, got -1.5."),
    "cannot import name … from …": (
        "cannot import name 'total' from 'answer'",
        'cannot import name "count" from `words`\nand more of it',
    ),
    "… is read at … of …, line N": (
        "answer.py is read at 0x7f3a of ./src/answer.py, line 3",
        "words.ts is read at 0xBEEF of /tmp/x/words.ts, line 30",
    ),
    "lint: … F401 it's unused": (
        "lint: a.py F401 it's unused",
        "lint: b.py F401 it's unused",
    ),
    "[red]Ω |` <b>": ("[red]Ω |` <b>", "[red]Ω |` <b>"),
}
UNLIKE = ("F401 it's unused", "F403 it's unused", "42", "43", "The model's is not the user's.")


def opened(benchmark: Benchmark, model: str = STRONG, run_id: str = RUN_ID, **more: object) -> Run:
    version = {"benchmark_version": benchmark.version.benchmark_version}
    return a_run(run_id, model, list(benchmark.items), **{**version, **more})


def reply(run: Run, key: ItemKey, sample: int = 0) -> Prediction:
    name = f"{run.run_id} {run.model} {key.item_id} {sample}"
    about = {"run_id": run.run_id, "model": run.model, "sample": sample, "prediction_id": name}
    return a_prediction(key.item_id, suite=key.suite, **about)


def graded(run: Run, scores: Sequence[float], reasons: Sequence[str] = ()) -> Records:
    """A reply to each item with its score, and with its reason if there is one."""
    replies = [reply(run, key) for key in run.plan]
    said = [{"reason": reason} for reason in reasons] or [{}] * len(replies)
    judged = [
        a_judgement(one, score, **why)
        for one, score, why in zip(replies, scores, said, strict=True)
    ]
    return [run, *replies, *judged]


@contextmanager
def published(
    folder: Path, benchmark: Benchmark, *records: Run | Prediction | Judgement
) -> Iterator[duckdb.DuckDBPyConnection]:
    journal = a_journal(folder, *records, benchmark=benchmark)
    warehouse = Warehouse(folder / "evals.duckdb", journal)
    warehouse.publish()
    with warehouse.reading() as db:
        yield db


def of_kind(found: Sequence[Pattern], kind: Kind) -> Mapping[str, tuple[int, int]]:
    """How many of how many, by what they have in common."""
    return {one.subject: (one.count, one.of) for one in found if one.kind is kind}


def test_errors_are_the_same_but_for_numbers_names_paths_and_addresses(tmp_path: Path) -> None:
    reasons = [line for pair in ALIKE.values() for line in pair] + list(UNLIKE)
    exam = a_benchmark(*(a_question(f"q{n:02}") for n in range(len(reasons))))
    run = opened(exam)

    with published(tmp_path, exam, *graded(run, [0.0] * len(reasons), reasons)) as db:
        found = patterns_of(db, *BY)

    assert of_kind(found, Kind.ERROR) == dict.fromkeys(ALIKE, (2, len(reasons)))
    # All of the run failed, so no category stands out.
    assert of_kind(found, Kind.CATEGORY) == {}
    (first,) = (one for one in found if one.subject.startswith("Expected"))
    assert first.items == ("sample/q00", "sample/q01")
    assert first.sentence == (
        "2 of 15 failed items have the same error, “Expected N items, got N.”: "
        "sample/q00, sample/q01."
    )


def test_what_the_analyst_says_went_wrong_comes_before_what_the_judge_says(tmp_path: Path) -> None:
    exam = a_benchmark(a_question("q1"), a_question("q2"))
    records = graded(opened(exam), [0.0, 0.0], ["One.", "Two."])
    verdicts = [one for one in records if isinstance(one, Judgement)]
    journal = a_journal(tmp_path, benchmark=exam)
    said = [a_diagnosis(one, error="Off by one.") for one in verdicts]
    journal.write_whole(DIAGNOSES, STRONG, RUN_ID, "1", records=said)

    with published(tmp_path, exam, *records) as db:
        found = patterns_of(db, *BY)

    assert of_kind(found, Kind.ERROR) == {"Off by one.": (2, 2)}


def test_an_error_that_names_the_answer_is_about_that_item_alone(tmp_path: Path) -> None:
    lines = {
        ("Answered B where E is expected.", "B"): 2,
        ("Answered 4.5 where 5 is expected.", "4.5."): 2,
        ("A unit is missing.", "B"): 2,
        ("No answer (None).", None): 2,
    }
    said = [one for one, times in lines.items() for _ in range(times)]
    exam = a_benchmark(*(a_question(f"q{n}") for n in range(len(said))))
    run = opened(exam)
    replies = [reply(run, key) for key in run.plan]
    verdicts = [
        a_judgement(one, 0.0, reason=line, extracted_answer=answer)
        for one, (line, answer) in zip(replies, said, strict=True)
    ]

    with published(tmp_path, exam, run, *replies, *verdicts) as db:
        found = of_kind(patterns_of(db, *BY), Kind.ERROR)

    assert found == {"A unit is missing.": (2, 8), "No answer (None).": (2, 8)}


def test_an_item_that_fails_in_the_same_way_again_is_no_pattern(tmp_path: Path) -> None:
    exam = a_benchmark(a_question("q1"), a_question("q2"))
    run, (key, other) = opened(exam, samples=2), list(exam.items)
    replies = [reply(run, key), reply(run, key, 1), reply(run, other), reply(run, other, 1)]
    verdicts = [
        a_judgement(one, score, reason="Too low.")
        for one, score in zip(replies, (0.0, 0.0, 1.0, 1.0), strict=True)
    ]

    with published(tmp_path, exam, run, *replies, *verdicts) as db:
        assert patterns_of(db, *BY) == []


PYTHON = """answer.py:1:8: F401 [*] `os` imported but unused
answer.py:9:1: E501 Line too long (120 > 100)
Found 2 errors."""
MYPY = 'answer.py:3: error: Argument 1 has incompatible type "X100"  [arg-type]\nFound 1 error'
ESLINT = """convex/a.ts:1:1: Unexpected any (see A100). (@typescript-eslint/no-explicit-any)
convex/a.ts:2:1: Unexpected token (syntax)"""
TSC = "convex/a.ts(1,2): error TS2345: Argument of type 'string' is not assignable."


def test_rules_are_known_by_what_checkers_print(tmp_path: Path) -> None:
    exam = a_benchmark(*(a_task(f"001-words/00{n}-a") for n in range(4)))
    run = opened(exam)
    outputs = [
        {"lint": PYTHON, "typecheck": MYPY},
        {"lint": f"{ESLINT}\n{PYTHON.splitlines()[0]}", "typecheck": f"{TSC}\n{TSC}"},
        {"lint": ESLINT, "typecheck": f"{MYPY}\n{TSC}"},
        # What tests print are no rules, nor is what steps say that passed.
        {"tests": f"{PYTHON}\n{ESLINT}"},
    ]
    records: Records = [run]
    for key, printed in zip(exam.items, outputs, strict=True):
        steps = [
            Step.model_validate({"name": name, "status": "failed", "output": text})
            for name, text in printed.items()
        ]
        passed = Step(name="lint", status="passed", output="answer.py:1:1: E501 fixed")
        code = graded_code(*(steps if "lint" in printed else [passed, *steps]))
        records += [reply(run, key), a_judgement(reply(run, key), 0.0, code=code)]

    with published(tmp_path, exam, *records) as db:
        found = patterns_of(db, *BY)

    assert of_kind(found, Kind.RULE) == {
        "@typescript-eslint/no-explicit-any": (2, 4),
        "F401": (2, 4),
        "TS2345": (2, 4),
        "arg-type": (2, 4),
    }
    (unused,) = (one for one in found if one.subject == "F401")
    assert unused.sentence == (
        "2 of 4 failed items break the rule F401: coding/001-words/000-a, coding/001-words/001-a."
    )


def test_categories_stand_out_that_fail_more_than_chance_makes_of_the_run(tmp_path: Path) -> None:
    scores = {
        "bad": [0.0] * 5 + [1.0],
        "less than half": [0.0] * 8 + [1.0] * 12,
        # By chance, as far as anybody knows.
        "few": [0.0, 0.0, 1.0, 1.0, 1.0],
        "single": [0.0],
        "good": [1.0] * 68,
    }
    flat = [(name, score) for name, all_of_it in scores.items() for score in all_of_it]
    exam = a_benchmark(*(a_question(f"q{n:02}", category=one) for n, (one, _) in enumerate(flat)))

    with published(tmp_path, exam, *graded(opened(exam), [score for _, score in flat])) as db:
        found = patterns_of(db, *BY)

    assert of_kind(found, Kind.CATEGORY) == {
        "sample/bad": (5, 6),
        "sample/less than half": (8, 20),
    }
    (bad, _) = (one for one in found if one.kind is Kind.CATEGORY)
    assert bad.sentence == (
        "5 of 6 judged items of the category sample/bad failed, in the run as a whole 16 of 100: "
        "sample/q00, sample/q01, sample/q02, sample/q03, sample/q04."
    )


def test_an_error_that_is_a_broken_rule_is_told_once(tmp_path: Path) -> None:
    exam = a_benchmark(*(a_task(f"001-words/00{n}-a") for n in range(3)))
    run = opened(exam)
    failed = Step(name="lint", status="failed", output=PYTHON.splitlines()[0])
    records: Records = [run]
    for number, key in enumerate(exam.items):
        verdict = a_judgement(reply(run, key), 0.0, code=graded_code(failed), reason="Unused.")
        other = verdict.model_copy(update={"reason": "Too long."})
        records += [reply(run, key), other if number else verdict]

    with published(tmp_path, exam, *records) as db:
        found = patterns_of(db, *BY)

    assert of_kind(found, Kind.RULE) == {"F401": (3, 3)}
    assert of_kind(found, Kind.ERROR) == {"Too long.": (2, 3)}


def test_items_are_compared_with_the_latest_runs_of_other_models(tmp_path: Path) -> None:
    exam = a_benchmark(*(a_question(f"q{n}") for n in range(1, 6)))
    later = NOON + timedelta(hours=1)
    records = [
        *graded(opened(exam), [0.0, 0.0, 1.0, 0.0, 0.0]),
        *graded(opened(exam, run_id="run-2", opened_at=later), [1.0, 1.0, 0.0, 1.0, 1.0]),
        # q2 failed before, and no more.
        *graded(opened(exam, "demo/weak", "run-1"), [0.0, 0.0, 0.0, 0.0, 0.0]),
        *graded(opened(exam, "demo/weak", "run-2", opened_at=later), [0.0, 1.0, 0.0, 1.0, 0.0]),
        *graded(opened(exam, "demo/good"), [1.0, 1.0, 1.0, 0.0, 0.0]),
        *graded(opened(exam, "demo/hot", experiment="hot"), [0.0] * 5),
        *graded(opened(exam, "real/model", simulated=False), [0.0] * 5),
    ]

    with published(tmp_path, exam, *records) as db:
        found = [one for one in patterns_of(db, *BY) if one.kind is Kind.ITEM]

    assert [(one.count, one.of, one.items) for one in found] == [
        (3, 3, ("sample/q5",)),
        (2, 3, ("sample/q1", "sample/q4")),
    ]
    assert found[0].models == found[1].models == ("demo/good", "demo/strong", "demo/weak")
    assert [one.sentence for one in found] == [
        "3 of 3 models failed: sample/q5 (demo/good, demo/strong, demo/weak).",
        "2 of 3 models failed: sample/q1, sample/q4.",
    ]


def test_the_most_frequent_come_first_and_are_bounded(tmp_path: Path) -> None:
    often = [f"{'abcdefghijkl'[n % 12]} is missing" for n in range(24)] + ["l is missing"]
    exam = a_benchmark(*(a_question(f"q{n:02}") for n in range(len(often))))

    with published(tmp_path, exam, *graded(opened(exam), [0.0] * len(often), often)) as db:
        errors = [one for one in patterns_of(db, *BY) if one.kind is Kind.ERROR]

    assert len(errors) == MOST
    assert (errors[0].subject, errors[0].count) == ("l is missing", 3)
