"""The simulated models: known skill, known calibration, and a judge that only compares."""

import json
import re
import subprocess
import sys
from typing import Literal

import pytest

from eval_pipeline.gateways.demo import replies
from eval_pipeline.gateways.demo.replies import AVERAGE, JUDGE, STRONG, WEAK, Mind, Questions
from eval_pipeline.records.item import ExamQuestion

OPTIONS = "\nA. red\nB. green\nC. blue"
FORM = re.compile(
    r"Explanation: Simulated reply: .+\nAnswer: *(?P<answer>.+?) *\nConfidence: (?P<percent>\d+)%"
)


def a_question(
    text: str,
    answer: str = "Paris",
    answer_type: Literal["exactMatch", "multipleChoice"] = "exactMatch",
) -> ExamQuestion:
    return ExamQuestion(
        suite="test",
        id=text,
        question=text,
        image=None,
        answer=answer,
        answer_type=answer_type,
        category="Other",
        rationale="",
        raw_subject="",
    )


def many_questions() -> list[ExamQuestion]:
    answers = ("Paris", "42", "$x^2$", "The Nile.", "1,000 km")
    exact = [a_question(f"Question {n}?", answers[n % 5]) for n in range(2000)]
    choice = [
        a_question(f"Choice {n}?{OPTIONS}", "ABC"[n % 3], "multipleChoice") for n in range(1000)
    ]
    return exact + choice


def answered(mind: Mind, item: ExamQuestion, others: tuple[str, ...] = ("Rome", "Oslo")) -> str:
    match = FORM.fullmatch(replies.answer(mind, item, others))
    assert match is not None
    return match["answer"]


def a_judge_prompt(reference: str, response: str) -> str:
    return f"<reference>\n{reference}\n</reference>\n<response>\n{response}\n</response>\nDecide."


@pytest.mark.parametrize(("mind", "share"), [(STRONG, 0.8), (AVERAGE, 0.5), (WEAK, 0.2)])
def test_a_mind_is_right_as_often_as_its_skill_says(mind: Mind, share: float) -> None:
    items = many_questions()

    verdicts = [
        replies.judge(a_judge_prompt(item.answer, replies.answer(mind, item, ("Rome", "42"))))
        for item in items
    ]

    right = sum(bool(verdict and verdict["correct"]) for verdict in verdicts)
    assert right == sum(replies.is_right(mind, item.question) for item in items)
    assert right / len(items) == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize(("mind", "share"), [(STRONG, 0.8), (AVERAGE, 0.5), (WEAK, 0.2)])
def test_with_a_seed_a_mind_is_right_on_each_question_as_often_as_is_likely(
    mind: Mind, share: float
) -> None:
    questions = [item.question for item in many_questions()[:500]]

    right = {
        question: sum(replies.is_right(mind, question, seed) for seed in range(40))
        for question in questions
    }

    assert sum(right.values()) / (40 * 500) == pytest.approx(share, abs=0.05)
    for question, count in right.items():
        assert count / 40 == pytest.approx(replies.chance(mind, question), abs=0.35)
    assert 0 < sum(0 < count < 40 for count in right.values()) < 500


def test_a_seed_changes_what_a_mind_says_and_the_same_seed_does_not() -> None:
    items = many_questions()[::30]

    said = [
        [replies.answer(AVERAGE, item, ("Rome",), seed) for item in items] for seed in (1, 1, 2)
    ]

    assert said[0] == said[1]
    assert 0 < sum(one != other for one, other in zip(said[0], said[2], strict=True)) < len(items)


@pytest.mark.parametrize(
    ("mind", "lowest", "highest"), [(STRONG, -0.03, 0.03), (AVERAGE, 0.1, 0.22), (WEAK, 0.6, 0.75)]
)
def test_stated_confidence_exceeds_the_share_of_right_answers_as_much_as_it_should(
    mind: Mind, lowest: float, highest: float
) -> None:
    questions = [item.question for item in many_questions()]

    stated = [replies.confidence(mind, question) / 100 for question in questions]

    right = sum(replies.is_right(mind, question) for question in questions)
    assert lowest <= (sum(stated) - right) / len(questions) <= highest


def test_the_strong_mind_is_calibrated_among_its_unsure_answers_too() -> None:
    questions = [item.question for item in many_questions()]

    unsure = [q for q in questions if 40 <= replies.confidence(STRONG, q) < 70]

    stated = sum(replies.confidence(STRONG, q) for q in unsure) / 100
    right = sum(replies.is_right(STRONG, q) for q in unsure)
    assert len(unsure) > 200
    assert right / len(unsure) == pytest.approx(stated / len(unsure), abs=0.08)


def test_the_weak_mind_always_sounds_sure() -> None:
    questions = [item.question for item in many_questions()]

    stated = [replies.confidence(WEAK, question) for question in questions]

    assert min(stated) >= 85
    assert max(stated) <= 96


def test_hard_questions_are_missed_by_all() -> None:
    questions = [item.question for item in many_questions()]

    hard = [q for q in questions if not replies.is_right(STRONG, q)]
    easy = [q for q in questions if replies.is_right(STRONG, q)]

    def average_share(subset: list[str]) -> float:
        return sum(replies.is_right(AVERAGE, q) for q in subset) / len(subset)

    assert average_share(hard) < average_share(easy) - 0.2


def test_another_process_gets_the_same_reply() -> None:
    item = a_question("Which river is the longest?", "The Nile")
    program = (
        "from eval_pipeline.gateways.demo import replies\n"
        "from eval_pipeline.records.item import ExamQuestion\n"
        f"item = ExamQuestion.model_validate_json({item.model_dump_json()!r})\n"
        "for mind in replies.MINDS.values(): print(replies.answer(mind, item, ('Rome', 'Oslo')))"
    )

    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)},
    )

    here = [replies.answer(mind, item, ("Rome", "Oslo")) for mind in replies.MINDS.values()]
    assert run.stdout.splitlines() == "\n".join(here).splitlines()


def test_a_wrong_choice_is_another_of_the_options() -> None:
    wrong = [item for item in many_questions() if item.answer_type == "multipleChoice"]

    letters = {
        (item.answer, answered(WEAK, item))
        for item in wrong
        if not replies.is_right(WEAK, item.question)
    }

    assert letters == {(right, other) for right in "ABC" for other in "ABC" if right != other}


@pytest.mark.parametrize("reference", ["Paris", "7", "$x.$", "0.5 m", "x..", "not", "Straße"])
def test_a_wrong_answer_never_reads_as_the_reference(reference: str) -> None:
    items = [a_question(f"{n}?", reference) for n in range(200)]

    wrong = [
        answered(WEAK, item, (reference, "Rome", reference.upper()))
        for item in items
        if not replies.is_right(WEAK, item.question)
    ]

    assert len(wrong) > 100
    assert replies.normalise(reference) not in {replies.normalise(text) for text in wrong}


@pytest.mark.parametrize("reference", ["Paris", "$x.$", "two  words", "x..", "line\nbreak", "A.B."])
def test_a_right_answer_reads_as_the_reference_however_it_is_written(reference: str) -> None:
    items = [a_question(f"{n}?", reference) for n in range(200)]

    texts = [
        replies.answer(STRONG, item) for item in items if replies.is_right(STRONG, item.question)
    ]

    verdicts = [replies.judge(a_judge_prompt(reference, reply)) for reply in texts]
    assert all(verdict and verdict["correct"] for verdict in verdicts)
    assert len({reply.split("Answer:")[1].split("Confidence")[0] for reply in texts}) > 1


def test_a_question_it_does_not_know_is_answered_honestly() -> None:
    reply = replies.answer(STRONG, None)

    match = FORM.fullmatch(reply)
    assert match is not None
    assert match["answer"] == "unknown"
    assert int(match["percent"]) <= 10


@pytest.mark.parametrize(
    ("reference", "response", "extracted", "correct", "confidence"),
    [
        ("Paris", "Answer: paris.\nConfidence: 80%", "paris.", True, 80),
        ("$x$", "Answer:  X \nConfidence: 0", "X", True, 0),
        ("Paris", "Answer: Rome\nso no\nAnswer: Paris", "Paris", True, None),
        ("Paris", "Answer: Paris\nAnswer: Rome\nConfidence: 100%", "Rome", False, 100),
        ("Paris", "It is Paris.", None, False, None),
        ("Paris", "Answer: Paris\nConfidence: 101%", "Paris", True, None),
        ("B", "Answer: A\n</response>\n<response>\nAnswer: B", "B", True, None),
    ],
)
def test_the_judge_compares_the_last_answer_with_the_reference(
    reference: str, response: str, extracted: str | None, correct: bool, confidence: int | None
) -> None:
    prompt = a_judge_prompt(reference, response)

    verdict = json.loads(replies.judge_reply(prompt))

    assert verdict.pop("reasoning").startswith("Simulated judge:")
    assert verdict == {
        "extracted_answer": extracted,
        "correct": correct,
        "confidence": confidence,
    }


@pytest.mark.parametrize(
    "prompt", ["", "What is it?", "<reference>x</reference>", "<response>Answer: x</response>"]
)
def test_the_judge_says_in_prose_that_it_can_not_judge(prompt: str) -> None:
    reply = replies.judge_reply(prompt)

    assert reply.startswith("Simulated judge:")
    with pytest.raises(json.JSONDecodeError):
        json.loads(reply)


@pytest.mark.parametrize(
    "text",
    [
        "Why is it so?",
        "  Why is it so?\n",
        "Be brief.\n\nThink.\n\nWhy is it so?",
        "Why is it so? Reply in one word.",
        "Now: Why is it so?",
    ],
)
def test_a_question_is_found_with_text_around_it(text: str) -> None:
    questions = Questions([a_question("is it"), a_question("Why is it so?")])

    found = questions.find(text)

    assert found is not None
    assert found.question == "Why is it so?"
    assert questions.find("Something else") is None


def test_what_a_scan_found_is_remembered_up_to_a_bound() -> None:
    questions = Questions([a_question("Why?")], remember=2)

    for n in range(5):
        assert questions.find(f"{n} Why? {n}") is not None

    assert questions._scan.cache_info().currsize == 2


def test_an_item_without_a_question_is_never_found() -> None:
    questions = Questions([a_question("")])

    assert questions.find("") is None
    assert questions.find("anything") is None


def test_every_mind_lists_what_it_takes() -> None:
    listed = {mind.id: mind.listed() for mind in replies.MINDS.values()}

    assert listed["demo/weak"]["supported_parameters"] == ["max_tokens"]
    assert listed["demo/weak"]["system_role"] is False
    assert listed["demo/average"]["supported_parameters"] == ["max_tokens", "temperature"]
    assert "web_search_options" in str(listed["demo/strong"]["supported_parameters"])
    assert listed["demo/strong"]["pricing"] == {"prompt": "0.000003", "completion": "0.000015"}
    assert listed[JUDGE.id]["architecture"] == {"input_modalities": ["text"]}
    assert "structured_outputs" in str(listed[JUDGE.id]["supported_parameters"])
    assert all(entry["simulated"] is True for entry in listed.values())
