"""The simulated models and the simulated judge, as pure functions."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pydantic import JsonValue

from eval_pipeline.gateways.demo import analyst
from eval_pipeline.records.item import ExamQuestion, Item
from eval_pipeline.records.model import Prices

REPLY_MARK = "Simulated reply:"
JUDGE_MARK = "Simulated judge:"

_CEILING = 0.95
_LETTERS = "ABCDE"
_OPTION_LINE = re.compile(r"^\s*\(?([A-E])[.):]", re.MULTILINE)
_OPTION_ANYWHERE = re.compile(r"(?<!\w)\(?([A-E])[.)](?=\s)")
_NUMBER = re.compile(r"[0-9]+")
_ANSWER = re.compile(r"^[ \t]*answer:[ \t]*(.*)$", re.IGNORECASE | re.MULTILINE)
_CONFIDENCE = re.compile(r"^[ \t]*confidence:[ \t]*(\d{1,3})\b", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Mind:
    """A simulated model; what it can do is known, so that what is measured can be checked."""

    id: str
    skill: float
    overconfidence: float = 0.0
    prices: Prices
    context_length: int = 128_000
    modalities: tuple[str, ...] = ("text", "image")
    system_role: bool = True
    temperature: bool = True
    structured_outputs: bool = False
    web_search: bool = False
    judges: bool = False

    def listed(self) -> dict[str, JsonValue]:
        """Return the entry in the list of models, in OpenRouter's words."""
        optional = {
            "temperature": self.temperature,
            "response_format": self.structured_outputs,
            "structured_outputs": self.structured_outputs,
            "web_search_options": self.web_search,
        }
        return {
            "id": self.id,
            "object": "model",
            "created": 1_735_689_600,
            "owned_by": "simulated",
            "name": f"{self.id.partition('/')[2].capitalize()} (simulated)",
            "description": "A simulation for trying the pipeline; no language model is behind it.",
            "context_length": self.context_length,
            "architecture": {"input_modalities": list(self.modalities)},
            "pricing": {
                "prompt": f"{self.prices.prompt:.10f}".rstrip("0"),
                "completion": f"{self.prices.completion:.10f}".rstrip("0"),
            },
            "supported_parameters": ["max_tokens", *(name for name in optional if optional[name])],
            "simulated": True,
            "system_role": self.system_role,
        }


STRONG = Mind(
    id="demo/strong",
    skill=0.8,
    prices=Prices(prompt=3e-6, completion=15e-6),
    context_length=200_000,
    web_search=True,
)
AVERAGE = Mind(
    id="demo/average",
    skill=0.5,
    overconfidence=0.35,
    prices=Prices(prompt=5e-7, completion=2e-6),
)
WEAK = Mind(
    id="demo/weak",
    skill=0.2,
    overconfidence=0.9,
    prices=Prices(prompt=1e-7, completion=4e-7),
    context_length=32_000,
    system_role=False,
    temperature=False,
)
JUDGE = Mind(
    id="demo/judge",
    skill=1.0,
    prices=Prices(prompt=1e-6, completion=4e-6),
    modalities=("text",),
    structured_outputs=True,
    judges=True,
)
MINDS: Mapping[str, Mind] = {mind.id: mind for mind in (STRONG, AVERAGE, WEAK, JUDGE)}


def draw(*parts: str) -> float:
    """Return a number from 0 up to 1 that looks random and is the same for the same parts."""
    text = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:6]) / 2**48


def question_hash(question: str) -> str:
    """Return the key of a question in the gateway's counts."""
    return hashlib.sha256(question.strip().encode("utf-8", "surrogatepass")).hexdigest()[:16]


def tokens(text: str) -> int:
    """Return an estimate: about four characters a token."""
    return -(-len(text) // 4)


def chance(mind: Mind, question: str) -> float:
    """Return how likely the mind is right on this question."""
    difficulty = draw("difficulty", question)
    # Over evenly spread difficulties this power has exactly the mean `skill`.
    return float((1 - difficulty) ** (1 / mind.skill - 1))


def is_right(mind: Mind, question: str, seed: int | None = None) -> bool:
    return _luck("luck", mind, question, seed) < chance(mind, question)


def _luck(what: str, mind: Mind, question: str, seed: int | None) -> float:
    """Draw the same each time, or for the seed if the request has one."""
    return draw(what, mind.id, question, *([] if seed is None else [str(seed)]))


def confidence(mind: Mind, question: str) -> int:
    """Return the percentage that the mind states; with overconfidence 1, always the ceiling."""
    true = chance(mind, question)
    return round(100 * (true + mind.overconfidence * (_CEILING - true)))


def answer(
    mind: Mind, item: ExamQuestion | None, others: Sequence[str] = (), seed: int | None = None
) -> str:
    """Return the mind's reply; `others` are answers to other items, to be wrong with.

    It is sure of some answers with any `seed`; the others are now right, now wrong.
    """
    if item is None:
        why = "this question is not among the items that the simulation knows"
        text, percent = "unknown", 5
    else:
        question = item.question.strip()
        right = is_right(mind, question, seed)
        why = (
            f"{mind.id} did not think about this question. Its answer was drawn by a fixed rule, "
            "so that the pipeline can be tried without a real model"
        )
        text = _written(mind, item, seed) if right else _mistake(mind, item, others, seed)
        percent = confidence(mind, question)
    return f"Explanation: {REPLY_MARK} {why}.\nAnswer: {text}\nConfidence: {percent}%"


def _written(mind: Mind, item: ExamQuestion, seed: int | None) -> str:
    """Return the reference on one line, now and then written in another harmless way."""
    reference = " ".join(item.answer.split())
    if item.answer_type == "multipleChoice":
        return reference
    ways = (reference, reference, reference + ".", f" {reference.replace(' ', '  ')} ")
    return ways[int(_luck("writing", mind, item.question, seed) * len(ways))]


def _mistake(mind: Mind, item: ExamQuestion, others: Sequence[str], seed: int | None) -> str:
    luck = _luck("mistake", mind, item.question, seed)
    if item.answer_type == "multipleChoice":
        return _other_letter(item, luck)
    reference = " ".join(item.answer.split())
    if _NUMBER.search(reference):
        return _NUMBER.sub(lambda number: _other_number(number[0], luck), reference, count=1)
    return _other_answer(reference, others, luck)


def _other_letter(item: ExamQuestion, luck: float) -> str:
    question, right = item.question, normalise(item.answer)[:1].upper()
    found: set[str] = set(_OPTION_LINE.findall(question) or _OPTION_ANYWHERE.findall(question))
    wrong = sorted(found - {right}) or sorted(set(_LETTERS) - {right})
    return wrong[int(luck * len(wrong))]


def _other_number(number: str, luck: float) -> str:
    last = (int(number[-1]) + 1 + int(luck * 9)) % 10
    return f"{number[:-1]}{last}"


def _other_answer(reference: str, others: Sequence[str], luck: float) -> str:
    first = int(luck * len(others))
    for number in range(first, first + min(16, len(others))):
        other = others[number % len(others)]
        if normalise(other) != normalise(reference):
            return " ".join(other.split())
    return f"not {reference}"


def normalise(text: str) -> str:
    """Return the answer in lower case, without extra spaces, a last period or $ around it."""
    plain = " ".join(text.casefold().split()).rstrip(". ")
    while len(plain) > 1 and plain.startswith("$") and plain.endswith("$"):
        plain = plain[1:-1].strip().rstrip(". ")
    return plain


def judge(prompt_text: str) -> dict[str, JsonValue] | None:
    """Return the verdict on the response in the prompt; None if there is nothing to judge."""
    reference, response = _between(prompt_text, "reference"), _between(prompt_text, "response")
    extracted, percent = "", None
    if _between(prompt_text, "criterion") is not None:
        # The simulation does not read code: it sees only whether there is a first file.
        correct = bool((_between(prompt_text, "files") or "").strip())
        why = f"it does not read code, and finds that there is some: {correct}."
    elif reference is None or response is None:
        return None
    else:
        extracted = next((text.strip() for text in reversed(_ANSWER.findall(response))), "")
        correct = extracted != "" and normalise(extracted) == normalise(reference)
        same = "the same" if correct else "not the same"
        why = f"the answer and the reference are {same} text after normalisation."
        percent = _stated_confidence(response)
    return {
        "extracted_answer": extracted or None,
        "reasoning": f"{JUDGE_MARK} {why}",
        "correct": correct,
        "confidence": percent,
    }


def judge_reply(prompt_text: str) -> str:
    """Return the verdict as JSON text, prose if there is none, or what the analyst explains."""
    if explanation := analyst.reply(prompt_text, draw):
        return explanation
    verdict = judge(prompt_text)
    if verdict is None:
        return f"{JUDGE_MARK} I can not judge this, it lacks a reference or a response in tags."
    return json.dumps(verdict, ensure_ascii=False)


def contrary(reply: str) -> str:
    """Return the opposite verdict; a reply that is no verdict stays as it is."""
    verdict = json.loads(reply) if reply.startswith("{") else {}
    if "correct" not in verdict:
        return reply
    said = f"{JUDGE_MARK} the contrary of what it finds, as it was told to flicker."
    turned = {**verdict, "reasoning": said, "correct": not verdict["correct"]}
    return json.dumps(turned, ensure_ascii=False)


def _stated_confidence(response: str) -> int | None:
    stated = [int(percent) for percent in _CONFIDENCE.findall(response)]
    return stated[-1] if stated and stated[-1] <= 100 else None  # noqa: PLR2004


def _between(text: str, tag: str) -> str | None:
    """Return the text up to the last closing tag: a response cannot end itself early."""
    start, end = text.find(f"<{tag}>"), text.rfind(f"</{tag}>")
    return text[start + len(tag) + 2 : end] if 0 <= start < end else None


class Questions:
    """Finds the item whose question a message holds, by its exact text if possible."""

    def __init__(self, items: Sequence[Item], *, remember: int = 10_000) -> None:
        self._exact = {item.question.strip(): item for item in reversed(items)}
        self._exact.pop("", None)
        self._longest_first = sorted(self._exact, key=len, reverse=True)
        self._scan = lru_cache(remember)(self._find_longest)
        exam = (item for item in items if isinstance(item, ExamQuestion))
        self.answers = tuple(item.answer for item in exam if item.answer_type == "exactMatch")

    def find(self, text: str) -> Item | None:
        """Return the item asked about, even with other text before or after the question."""
        text = text.strip()
        for candidate in _endings(text):
            if item := self._exact.get(candidate):
                return item
        return self._scan(text)

    def _find_longest(self, text: str) -> Item | None:
        # The longest wins: a short question may be a part of a longer one.
        found = next((question for question in self._longest_first if question in text), None)
        return None if found is None else self._exact[found]


def _endings(text: str) -> Iterator[str]:
    """Yield the text, and what is left of it after each of its first blank lines."""
    yield text
    for _ in range(8):
        _, blank_line, text = text.partition("\n\n")
        if not blank_line:
            return
        yield text.strip()
