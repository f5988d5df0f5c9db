"""Questions beside the tasks of a convex-evals checkout: asked, graded by rules, refused."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.errors import DatasetError
from eval_pipeline.records.item import ExamQuestion
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.exam.dataset import load_questions
from eval_pipeline.suites.exam.rules.grading import grade_by_rules
from eval_pipeline.suites.kinds import Prompts
from eval_pipeline_tests.builders import a_model, settings_in
from eval_pipeline_tests.convex_stand import CHECKOUT

TASK = "001-queries/002-joins"
CODE = """```ts
type Row = {
  A: string,
  B: number,
};
```

A) is a line of this file, too.
D. And so is this.
"""


def decisions(path: str = "evals", **more: str) -> dict[str, str]:
    return {"kind": "exam", "name": "decisions", "path": path, **more}


def an_option(name: str, **changes: str) -> dict[str, str]:
    return {"id": name, "text": f"Text {name}.", "rationale": f"Reason {name}.", **changes}


def a_decision(name: str = "q1", **changes: object) -> dict[str, Any]:
    question = {
        "id": name,
        "concept": "Joins",
        "context": "A: this line of the context is no option.",
        "question": "Which one?",
        "options": [an_option(one) for one in ("w", "x", "y", "z")],
        "correctOptionId": "x",
        "sourceReferences": ["TASK.txt"],
    }
    return question | changes


def a_bank(*questions: dict[str, Any], **changes: object) -> dict[str, Any]:
    bank = {
        "version": 1,
        "sourceEval": TASK,
        "coverageNotes": "Nothing but joins.",
        "questions": list(questions or [a_decision()]),
    }
    return bank | changes


def write_bank(root: Path, text: str, task: str = TASK) -> Path:
    path = root / "evals" / task / "questions.json"
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")
    return path


def load(settings: Settings) -> list[ExamQuestion]:
    return list(load_questions(settings.suites[0], settings))


def loaded(root: Path, *questions: dict[str, Any]) -> list[ExamQuestion]:
    write_bank(root, json.dumps(a_bank(*questions)))
    return load(settings_in(root, suites=[decisions()]))


def refusal(root: Path, **more: str) -> str:
    with pytest.raises(DatasetError) as raised:
        load(settings_in(root, suites=[decisions(**more)]))
    return str(raised.value)


def test_every_question_of_a_checkout_is_one_of_the_exam(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, suites=[decisions(str(CHECKOUT / "evals"))])

    first, second = load(settings)

    assert (first.id, first.category) == ("000-basics/000-guest_book/q1", "basics")
    assert (first.suite, first.raw_subject) == ("decisions", "Who may write")
    assert first.cluster == second.cluster == "000-basics/000-guest_book"
    assert first.answer_type == "multipleChoice"
    assert f"{first.answer}. A public mutation." in first.question.splitlines()
    assert f"{first.answer}: Browsers call public functions, and mutations write." in (
        first.rationale.splitlines()
    )
    assert second.question.startswith("Which expression reads the ten latest guests?")


def test_options_are_in_an_order_that_is_drawn_once_for_everybody(tmp_path: Path) -> None:
    questions = [a_decision(f"q{number}") for number in range(40)]

    items = loaded(tmp_path, *questions)

    assert items == load(settings_in(tmp_path, suites=[decisions()]))
    letters = Counter(item.answer for item in items)
    assert set(letters) == set("ABCD")
    assert max(letters.values()) < 20


def test_models_see_the_question_and_nothing_that_gives_it_away(tmp_path: Path) -> None:
    options = [an_option(f"id-{one}") for one in ("w", "x", "y", "z")]
    question = a_decision("q1", concept="Secret concept", options=options, correctOptionId="id-x")
    (item,) = loaded(tmp_path, question | {"sourceReferences": ["answer/secret.ts"]})
    settings = settings_in(tmp_path, suites=[decisions()])

    messages = Prompts.of(settings, settings.experiments["default"]).messages(item, a_model())

    said = str(messages)
    assert "Text id-x." in said
    for hidden in ("Reason", "Secret concept", "secret.ts", "Nothing but joins", TASK, "'id-x"):
        assert hidden not in said


@pytest.mark.parametrize("text", [CODE, "```ts\nv.id()\n```", "One line.\nAnd another."])
@pytest.mark.parametrize(
    "form",
    ["{}", "{}.", "({})", "**{}**", "Option {}", "{0}. Option {0}", "`{}`", "$\\boxed{{{}}}$"],
)
def test_letters_are_graded_for_certain_where_options_are_code(
    tmp_path: Path, text: str, form: str
) -> None:
    options = [an_option(one, text=f"{one}\n{text}") for one in ("w", "x", "y")]
    (item,) = loaded(tmp_path, a_decision(options=[*options, an_option("z")]))

    for letter in "ABCD":
        reply = f"Explanation: a guess\nAnswer: {form.format(letter)}\nConfidence: 80%"
        verdict = grade_by_rules(item, reply)
        assert verdict.certain
        assert verdict.correct == (letter == item.answer)


def test_letters_are_graded_for_certain_where_options_are_of_one_line(tmp_path: Path) -> None:
    (item,) = loaded(tmp_path, a_decision())
    options = dict(line.split(". ", 1) for line in item.question.splitlines()[-4:])

    assert [*options] == [*"ABCD"]
    for letter, text in options.items():
        for said in (letter, f"{letter}. {text}", f"{letter}) {text}"):
            verdict = grade_by_rules(item, f"Answer: {said}")
            assert verdict.certain
            assert verdict.correct == (text == "Text x.")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Invalid JSON"),
        ("[]", "Input should be an object"),
        (a_bank(version=2), "version: input should be 1"),
        (a_bank(sourceEval="001-queries/001-x"), f"sourceEval must be {TASK}, as its folder"),
        (a_bank(questions=[]), "questions: tuple should have at least 1 item"),
        (a_bank(a_decision(), a_decision()), "two questions have the id 'q1'"),
        (a_bank(a_decision(hint="x")), "questions.0.hint: extra inputs are not permitted"),
        (a_bank(a_decision(question=" ")), "questions.0.question: string should have at least 1"),
        (a_bank(a_decision(id="../q")), "questions.0.id: string should match pattern"),
        (a_bank(a_decision(options=[])), "questions.0.options: tuple should have at least 4 items"),
        (a_bank(a_decision(correctOptionId="v")), "correctOptionId names no option: 'v'"),
        (
            a_bank(a_decision(options=[an_option(one, text="same") for one in "wxyz"])),
            "questions.0: the texts of its options must differ",
        ),
        (
            a_bank(a_decision(options=[an_option("w", text=one) for one in "wxyz"])),
            "questions.0: the ids of its options must differ",
        ),
    ],
)
def test_a_file_that_is_wrong_is_named_with_the_reason(
    tmp_path: Path, text: str | dict[str, Any], reason: str
) -> None:
    write_bank(tmp_path, text if isinstance(text, str) else json.dumps(text))
    fine = a_bank(sourceEval="001-queries/003-fine")
    write_bank(tmp_path, json.dumps(fine), "001-queries/003-fine")

    told = refusal(tmp_path)

    assert told.startswith(f"evals/{TASK}/questions.json: ")
    assert reason in told
    assert "003-fine" not in told


def test_a_link_is_not_followed_out_of_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.json").write_text(json.dumps(a_bank()))
    path = write_bank(tmp_path, "")
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere.json")

    assert "questions.json: is a link" in refusal(tmp_path)


def test_what_is_not_a_file_is_not_read(tmp_path: Path) -> None:
    path = write_bank(tmp_path, "")
    path.unlink()
    os.mkfifo(path)

    assert "questions.json: is not a file" in refusal(tmp_path)


def test_a_folder_without_questions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "evals" / TASK).mkdir(parents=True)

    assert "evals: there is no questions.json in it" in refusal(tmp_path)


def test_what_groups_questions_in_a_folder_is_no_setting(tmp_path: Path) -> None:
    write_bank(tmp_path, json.dumps(a_bank()))

    assert "suites.decisions.cluster: questions in a folder" in refusal(tmp_path, cluster="passage")
