"""The simulated models as pure functions: who they are, what they answer, how the judge decides."""

import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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
    overconfidence: float
    prices: Prices
    context_length: int
    modalities: tuple[str, ...] = ("text", "image")
    system_role: bool = True
    temperature: bool = True
    structured_outputs: bool = False
    web_search: bool = False
    judges: bool = False

    def listed(self) -> dict[str, JsonValue]:
        """The mind as an entry of the list of models, in OpenRouter's words."""
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
    overconfidence=0.0,
    prices=Prices(prompt=3e-6, completion=15e-6),
    context_length=200_000,
    web_search=True,
)
AVERAGE = Mind(
    id="demo/average",
    skill=0.5,
    overconfidence=0.35,
    prices=Prices(prompt=5e-7, completion=2e-6),
    context_length=128_000,
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
    overconfidence=0.0,
    prices=Prices(prompt=1e-6, completion=4e-6),
    context_length=128_000,
    modalities=("text",),
    structured_outputs=True,
    judges=True,
)
MINDS: Mapping[str, Mind] = {mind.id: mind for mind in (STRONG, AVERAGE, WEAK, JUDGE)}


def draw(*parts: str) -> float:
    """A number from 0 up to 1 that looks random and is the same for the same parts, anywhere."""
    text = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:6]) / 2**48


def question_hash(question: str) -> str:
    """What names a question in the gateway's counts."""
    return hashlib.sha256(question.strip().encode("utf-8", "surrogatepass")).hexdigest()[:16]


def tokens(text: str) -> int:
    """An estimate: about four characters a token."""
    return -(-len(text) // 4)


def chance(mind: Mind, question: str) -> float:
    """How likely the mind is right on this question."""
    difficulty = draw("difficulty", question)
    # Over evenly spread difficulties this power has exactly the mean `skill`.
    return float((1 - difficulty) ** (1 / mind.skill - 1))


def is_right(mind: Mind, question: str, seed: int | None = None) -> bool:
    return _luck("luck", mind, question, seed) < chance(mind, question)


def _luck(what: str, mind: Mind, question: str, seed: int | None) -> float:
    """The same each time, unless a request has a seed: then it is that seed's."""
    return draw(what, mind.id, question, *([] if seed is None else [str(seed)]))


def confidence(mind: Mind, question: str) -> int:
    """The percentage that the mind states; overconfidence 1 would always claim the ceiling."""
    true = chance(mind, question)
    return round(100 * (true + mind.overconfidence * (_CEILING - true)))


def answer(
    mind: Mind, item: ExamQuestion | None, others: Sequence[str] = (), seed: int | None = None
) -> str:
    """The mind's reply; `others` are answers to other items, to be wrong with.

    What it is sure about it says with any `seed`; what it is not, is now right, now wrong.
    """
    if item is None:
        return _reply(
            "this question is not among the items that the simulation knows", "unknown", 5
        )
    question = item.question.strip()
    right = is_right(mind, question, seed)
    text = _written(mind, item, seed) if right else _mistake(mind, item, others, seed)
    return _reply(
        f"{mind.id} did not think about this question. Its answer was drawn by a fixed rule, "
        "so that the pipeline can be tried without a real model",
        text,
        confidence(mind, question),
    )


def _reply(explanation: str, text: str, percent: int) -> str:
    return f"Explanation: {REPLY_MARK} {explanation}.\nAnswer: {text}\nConfidence: {percent}%"


def _written(mind: Mind, item: ExamQuestion, seed: int | None) -> str:
    """The reference on one line, now and then in another harmless way of writing it."""
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
    """An answer without what does not change its meaning: case, spaces, last period, $ around."""
    plain = " ".join(text.casefold().split()).rstrip(". ")
    while len(plain) > 1 and plain.startswith("$") and plain.endswith("$"):
        plain = plain[1:-1].strip().rstrip(". ")
    return plain


def judge(prompt_text: str) -> dict[str, JsonValue] | None:
    """The verdict on the response in the prompt; None if there is nothing to judge."""
    if _between(prompt_text, "criterion") is not None:
        return _review(prompt_text)
    reference, response = _between(prompt_text, "reference"), _between(prompt_text, "response")
    if reference is None or response is None:
        return None
    extracted = next((text.strip() for text in reversed(_ANSWER.findall(response))), "")
    correct = extracted != "" and normalise(extracted) == normalise(reference)
    return {
        "extracted_answer": extracted or None,
        "reasoning": f"{JUDGE_MARK} the answer and the reference are "
        f"{'the same' if correct else 'not the same'} text after normalisation.",
        "correct": correct,
        "confidence": _stated_confidence(response),
    }


def _review(prompt_text: str) -> dict[str, JsonValue]:
    """Of code: whether its first file is there, which is all that the simulation can tell."""
    there = bool((_between(prompt_text, "files") or "").strip())
    return {
        "extracted_answer": None,
        "reasoning": f"{JUDGE_MARK} it does not read code, and finds that there is some: {there}.",
        "correct": there,
        "confidence": None,
    }


def judge_reply(prompt_text: str) -> str:
    """The verdict as JSON text, or in prose that there can be none; asked why, it is an analyst."""
    if explanation := analyst.reply(prompt_text, draw):
        return explanation
    verdict = judge(prompt_text)
    if verdict is None:
        return f"{JUDGE_MARK} I can not judge this, it lacks a reference or a response in tags."
    return json.dumps(verdict, ensure_ascii=False)


def contrary(reply: str) -> str:
    """The verdict turned round; what is no verdict stays as it is."""
    if not reply.startswith("{"):
        return reply
    verdict = json.loads(reply)
    if "correct" not in verdict:
        return reply
    said = f"{JUDGE_MARK} the contrary of what it finds, as it was told to flicker."
    turned = {**verdict, "reasoning": said, "correct": not verdict["correct"]}
    return json.dumps(turned, ensure_ascii=False)


def _stated_confidence(response: str) -> int | None:
    stated = [int(percent) for percent in _CONFIDENCE.findall(response)]
    return stated[-1] if stated and stated[-1] <= 100 else None  # noqa: PLR2004


def _between(text: str, tag: str) -> str | None:
    """From the first opening to the last closing tag: a response can not end itself early."""
    start, end = text.find(f"<{tag}>"), text.rfind(f"</{tag}>")
    return text[start + len(tag) + 2 : end] if 0 <= start < end else None


class Questions:
    """Finds the item whose question a message holds, by its exact text if possible."""

    def __init__(self, items: Sequence[Item], *, remember: int = 50_000) -> None:
        self._exact = {item.question.strip(): item for item in reversed(items)}
        self._exact.pop("", None)
        self._longest_first = sorted(self._exact, key=len, reverse=True)
        self._remember = remember
        self._scanned: OrderedDict[str, Item | None] = OrderedDict()
        exam = (item for item in items if isinstance(item, ExamQuestion))
        self.answers = tuple(item.answer for item in exam if item.answer_type == "exactMatch")

    def find(self, text: str) -> Item | None:
        """The item asked about, also when other text stands before or after the question."""
        text = text.strip()
        for candidate in _endings(text):
            if item := self._exact.get(candidate):
                return item
        key = question_hash(text)
        if key not in self._scanned:
            self._scanned[key] = self._scan(text)
            if len(self._scanned) > self._remember:
                self._scanned.popitem(last=False)
        return self._scanned[key]

    def _scan(self, text: str) -> Item | None:
        # The longest wins: a short question may be a part of a longer one.
        found = next((question for question in self._longest_first if question in text), None)
        return None if found is None else self._exact[found]


def _endings(text: str) -> Iterator[str]:
    """The text, and what is left of it after each of its first blank lines."""
    yield text
    for _ in range(8):
        _, blank_line, text = text.partition("\n\n")
        if not blank_line:
            return
        yield text.strip()
