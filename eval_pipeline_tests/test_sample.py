"""The bundled question set: large, varied and well-formed enough to be worth asking."""

import re
from collections import Counter
from pathlib import Path

from eval_pipeline.settings.sections import Suite
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.exam.dataset import load_questions
from eval_pipeline_tests.builders import settings_in

SAMPLE = Path(__file__).parent.parent / "data" / "sample" / "questions.jsonl"
OPTION = re.compile(r"^([A-Z])\.? ", re.MULTILINE)


def sample_settings(folder: Path) -> tuple[Suite, Settings]:
    settings = settings_in(folder, suites=[{"name": "sample", "path": SAMPLE}])
    return settings.suites[0], settings


def test_the_sample_has_enough_of_everything(tmp_path: Path) -> None:
    questions = [*load_questions(*sample_settings(tmp_path))]

    assert len(questions) >= 120
    assert len({question.category for question in questions}) >= 8
    assert min(Counter(question.category for question in questions).values()) >= 10
    assert min(Counter(question.answer_type for question in questions).values()) >= 40
    assert sum(question.image is not None for question in questions) >= 12


def test_every_multiple_choice_answer_is_one_of_its_options(tmp_path: Path) -> None:
    questions = [*load_questions(*sample_settings(tmp_path))]

    chosen = [question for question in questions if question.answer_type == "multipleChoice"]
    wrong = [
        question.id
        for question in chosen
        if question.answer not in OPTION.findall(question.question)
    ]
    assert wrong == []


def test_no_letter_is_right_too_often(tmp_path: Path) -> None:
    questions = [*load_questions(*sample_settings(tmp_path))]

    letters = Counter(
        question.answer for question in questions if question.answer_type == "multipleChoice"
    )
    assert max(letters.values()) < 0.35 * letters.total()


def test_every_question_says_why_its_answer_is_right(tmp_path: Path) -> None:
    questions = [*load_questions(*sample_settings(tmp_path))]

    assert [question.id for question in questions if len(question.rationale) < 40] == []
    assert len({question.question for question in questions}) == len(questions)
