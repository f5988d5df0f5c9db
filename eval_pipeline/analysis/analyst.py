"""The evidence of a failure to an analyst; its reply to an explanation, or why there is none."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import count

from pydantic import JsonValue

from eval_pipeline.analysis.evidence import Evidence, Part
from eval_pipeline.gateways.chat import ChatRequest
from eval_pipeline.gateways.structured import (
    Ask,
    ParsedReply,
    ReplyFormats,
    ReplySchema,
    UnfitReplyError,
    ask_for,
    form_request,
    formats_of,
    read_json,
)
from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.coding import STEPS, CodingTask
from eval_pipeline.records.diagnosis import Classification, Explanation
from eval_pipeline.records.item import Item
from eval_pipeline.records.model import Model
from eval_pipeline.records.prediction import ReplyFormat
from eval_pipeline.settings.sections import PACKAGE

PROMPT = PACKAGE / "prompts" / "analysis.txt"
MOST_OF_A_PART = 12_000
"""Characters of one part of the evidence that the analyst is shown."""
MOST_OF_AN_ERROR = 200
MOST_OF_A_REASONING = 2_000
MOST_OF_A_SNIPPET = 4_000
LINES_OF_A_SNIPPET = 40
LEAST_OF_A_GAP = 20
"""Characters of an entry that have to be named, where it is not named as a whole."""
NO_ENTRIES = {"", "none", "none known", "nothing", "todo", "tbd", "n/a"}

# In this order: who gives reasons first decides by them.
_PROPERTIES: dict[str, JsonValue] = {
    "failed_step": {"type": ["string", "null"]},
    "error": {"type": "string"},
    "reasoning": {"type": "string"},
    "classification": {"type": "string", "enum": [str(one) for one in Classification]},
    "model_snippet": {"type": "string"},
    "expected_snippet": {"type": "string"},
    "gap": {"type": ["string", "null"]},
}
SCHEMA: dict[str, JsonValue] = {
    "name": "explanation",
    "strict": True,
    "schema": {
        "type": "object",
        "properties": _PROPERTIES,
        "required": list(_PROPERTIES),
        "additionalProperties": False,
    },
}
_PLACEHOLDER = re.compile(r"\{(token|parts)\}")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Analyst:
    """A model that is asked why items failed, and how it is asked."""

    model: Model
    max_tokens: int | None = None
    prompt: str = field(default_factory=lambda: PROMPT.read_text("utf-8").strip())

    @cached_property
    def version(self) -> str:
        """Equal for explanations that were asked for in the same way."""
        return fingerprint(self.prompt, SCHEMA, self.max_tokens)

    @cached_property
    def formats(self) -> ReplyFormats:
        """In which formats it replies, as far as is known yet."""
        return ReplyFormats(formats_of(self.model))

    async def explain(self, evidence: Evidence, ask: Ask) -> ParsedReply[Explanation]:
        """Asks why it failed; a reply that can not stand is asked for once more, then told."""
        form = ReplySchema("analyst", "explanation", partial(read_explanation, evidence))
        text = filled(self.prompt, evidence.parts())
        return await ask_for(form, ask, partial(self._request, text), self.formats)

    def request(self, evidence: Evidence) -> ChatRequest:
        """What is asked at first; the same for the same evidence."""
        return self._request(filled(self.prompt, evidence.parts()), self.formats.to_try()[0])

    def _request(self, text: str, reply_format: ReplyFormat) -> ChatRequest:
        return form_request(
            self.model, text, SCHEMA, max_tokens=self.max_tokens, reply_format=reply_format
        )


def filled(prompt: str, parts: Sequence[Part]) -> str:
    """The prompt with its parts, each between tags that no text in them can hold."""
    token = _token(parts)
    shown = "\n\n".join(_fenced(part, token) for part in parts)
    values = {"token": token, "parts": shown}
    return _PLACEHOLDER.sub(lambda found: values[found[1]], prompt)


def _token(parts: Sequence[Part]) -> str:
    """A hash of all that is shown, so that nobody could write it into any of that."""
    shown: JsonValue = [[part.name, part.about, part.text] for part in parts]
    tokens = (fingerprint(shown, number) for number in count())
    return next(one for one in tokens if not any(one in part.text for part in parts))


def _fenced(part: Part, token: str) -> str:
    tag = f"{part.name}-{token}"
    return f"{part.about}\n<{tag}>\n{_cut(part, token)}\n</{tag}>"


def _cut(part: Part, token: str) -> str:
    """A long text without its middle, and a line in its place that says so."""
    left_out = len(part.text) - MOST_OF_A_PART
    if left_out <= 0:
        return part.text
    start = MOST_OF_A_PART // (4 if part.ends else 2)
    told = f"[{token}: {left_out} characters are left out here]"
    return f"{part.text[:start]}\n{told}\n{part.text[start + left_out :]}"


def read_explanation(evidence: Evidence, text: str) -> Explanation | None:
    """The explanation that a reply is, in bounds; an UnfitReplyError if it can not stand."""
    try:
        said = Explanation.model_validate(read_json(text))
    except (ValueError, RecursionError):
        return None
    error, reasoning = (" ".join(one.split()) for one in (said.error, said.reasoning))
    if not error or not reasoning:
        return None
    return Explanation(
        failed_step=_step(evidence, said),
        error=_shortened(error, MOST_OF_AN_ERROR),
        classification=said.classification,
        reasoning=_shortened(reasoning, MOST_OF_A_REASONING),
        model_snippet=_snippet(said.model_snippet),
        expected_snippet=_snippet(said.expected_snippet),
        gap=_gap(evidence.item, said),
    )


def _step(evidence: Evidence, said: Explanation) -> str | None:
    """The step that was graded as failed, whatever the analyst calls it."""
    if not isinstance(evidence.item, CodingTask):
        return None
    return evidence.failure.failed_step or next(
        (step for step in STEPS if step == said.failed_step), None
    )


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _snippet(text: str) -> str:
    """Lines that are not too many; that some are missing can be seen."""
    lines = text.strip("\n").split("\n")
    shown = "\n".join(lines[:LINES_OF_A_SNIPPET])
    cut = len(lines) > LINES_OF_A_SNIPPET or len(shown) > MOST_OF_A_SNIPPET
    return f"{shown[:MOST_OF_A_SNIPPET].rstrip()}\n…" if cut else shown.rstrip()


def _gap(item: Item, said: Explanation) -> str | None:
    """The entry of GAPS.txt that is meant, as it stands there: without one it is no known gap."""
    if said.classification is not Classification.KNOWN_GAP:
        return None
    gaps = item.gaps if isinstance(item, CodingTask) else ""
    entry = matching_entry(gap_entries(gaps), said.gap or "")
    if entry is None:
        named = _shortened(" ".join((said.gap or "nothing").split()), MOST_OF_AN_ERROR)
        raise UnfitReplyError(
            f"The analyst says KNOWN_GAP, but names no entry of the item's GAPS.txt: {named}"
        )
    return entry


def gap_entries(gaps: str) -> list[str]:
    """The entries of a GAPS.txt: its paragraphs, and in them each line with a bullet."""
    entries: list[list[str]] = [[]]
    for line in gaps.splitlines():
        if not line.strip() or line.startswith("#") or _BULLET.match(line):
            entries.append([])
        if line.startswith("#"):  # a heading
            continue
        entries[-1].append(_BULLET.sub("", line).strip())
    told = (" ".join(filter(None, lines)) for lines in entries)
    return [entry for entry in told if _plain(entry) not in NO_ENTRIES and _WORD.search(entry)]


def matching_entry(entries: Iterable[str], named: str) -> str | None:
    """The entry that is named, as a whole or by a good part of it; the longest of several."""
    wanted = _plain(named)
    fitting = [entry for entry in entries if _are_alike(_plain(entry), wanted)]
    return max(fitting, key=len, default=None)


def _are_alike(entry: str, named: str) -> bool:
    shorter, longer = sorted((entry, named), key=len)
    if len(shorter) < LEAST_OF_A_GAP:
        return entry == named != ""
    # As words: what begins in the middle of one names nothing.
    return re.search(rf"(?<!\w){re.escape(shorter)}(?!\w)", longer) is not None


def _plain(text: str) -> str:
    """Without what does not change which entry is meant."""
    return " ".join(_BULLET.sub("", text).casefold().split()).strip("\"'`. ")
