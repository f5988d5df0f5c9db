"""The only module that knows there are two kinds of eval, besides the packages of each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pydantic import JsonValue

from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import ExamQuestion, Item
from eval_pipeline.records.model import Model
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.settings.sections import PACKAGE, Experiment, Suite
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.coding.convex_checkout import guidelines_of, is_checkout
from eval_pipeline.suites.coding.dataset import load_tasks
from eval_pipeline.suites.coding.guidelines import Guidelines, GuidelinesError
from eval_pipeline.suites.coding.toolchains.registry import TOOLCHAINS
from eval_pipeline.suites.exam.dataset import load_questions

GUIDELINES = "guidelines.md"
"""Where a suite in a folder has its guidelines, unless its settings say otherwise."""

PROJECT_FORMAT = "convex_project"
"""How whole projects are to be written, which a checkout of convex-evals asks for."""

# By name, so that a field which items get later does not change the version of older ones.
_HASHED = {
    "exam": "id question image answer answer_type category rationale raw_subject",
    "coding": "id question category toolchain grader_version",
}


def load_items(suite: Suite, settings: Settings) -> Iterator[Item]:
    """Every item of a suite, in order; whether all are right, the end tells."""
    return (
        load_tasks(suite, settings) if suite.kind == "coding" else load_questions(suite, settings)
    )


def decisive(item: Item) -> dict[str, JsonValue]:
    """All of an item that decides what a pass on it means."""
    hashed = {*_HASHED[item.kind].split(), *(() if item.cluster is None else ("cluster",))}
    return item.model_dump(include=hashed)


def graded_alike(one: Item, other: Item) -> bool:
    """Whether a verdict on an answer to the one holds for the other too."""
    match one, other:
        case ExamQuestion(), ExamQuestion():
            return (one.question, one.answer) == (other.question, other.answer)
        case CodingTask(), CodingTask():
            return one.grader_version == other.grader_version
    return False


def gaps_hash(item: Item) -> str | None:
    """Of the known faults of a task, which are no part of what a pass means; None without any."""
    return fingerprint(item.gaps) if isinstance(item, CodingTask) and item.gaps else None


def read_prompt(settings: Settings, path: Path) -> str:
    """A prompt file's text; paths are relative to the settings file."""
    try:
        return settings.path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"The prompt file {path} can not be read: {error}.") from None


@dataclass(frozen=True)
class Prompts:
    """What models are told besides the item itself."""

    exam: str
    coding: str = ""
    # By suite; one without guidelines is not in it. Apart, so that each kind has a hash of its own.
    guidelines: Mapping[str, Guidelines] = field(default_factory=dict)
    exam_guidelines: Mapping[str, Guidelines] = field(default_factory=dict)
    # How answers are to be written, by name: one for each toolchain, and one for whole projects.
    formats: tuple[str, ...] = tuple(sorted(TOOLCHAINS))

    @classmethod
    def of(cls, settings: Settings, experiment: Experiment) -> "Prompts":
        """Those of an experiment; what no suite needs is not read."""
        exam = read_prompt(settings, experiment.system_prompt)
        coding, formats = "", cls.formats
        guidelines: dict[str, dict[str, Guidelines]] = {"exam": {}, "coding": {}}
        for suite in settings.suites:
            if (found := _guidelines(suite, settings, experiment)) is not None:
                guidelines[suite.kind][suite.name] = found
            if suite.kind == "coding":
                coding = coding or read_prompt(settings, experiment.coding_prompt)
                if suite.path and is_checkout(settings.path(suite.path)):
                    formats = (*cls.formats, PROJECT_FORMAT)
        return cls(exam, coding, guidelines["coding"], guidelines["exam"], formats)

    @cached_property
    def exam_guidelines_hashes(self) -> dict[str, str]:
        """Of the guidelines that questions are asked with, by suite."""
        return {suite: fingerprint(one.whole) for suite, one in self.exam_guidelines.items()}

    @cached_property
    def coding_hash(self) -> str:
        """Of all that is said besides coding tasks."""
        return fingerprint(
            self.coding,
            {name: output_format(name) for name in self.formats},
            {
                suite: [[toolchain, section.text] for toolchain, section in one.parts]
                for suite, one in self.guidelines.items()
            },
        )

    @cached_property
    def hash(self) -> str:
        """Of everything; where there is no coding task, of what questions are asked with."""
        parts: list[JsonValue] = [self.exam]
        if self.exam_guidelines:
            parts.append({**self.exam_guidelines_hashes})
        if self.coding:
            parts.append(self.coding_hash)
        return fingerprint(*parts)

    def messages(self, item: Item, model: Model) -> tuple[dict[str, JsonValue], ...]:
        """Return the item as chat messages: its own text comes last, after all else that is said.

        A model without a system role reads everything in one message.
        """
        match item:
            case ExamQuestion():
                system, guidelines = self.exam, self.exam_guidelines.get(item.suite)
                told = guidelines.whole if guidelines else ""
                before = [told, "The question:" if told else ""]
            case CodingTask():
                system, guidelines = self.coding, self.guidelines.get(item.suite)
                told = guidelines.text(item.toolchain) if guidelines else ""
                form = output_format(PROJECT_FORMAT if item.is_project else item.toolchain)
                before = [form, told, "The task:"]
        roles: tuple[dict[str, JsonValue], ...] = ({"role": "system", "content": system},)
        if not model.system_role:
            roles, before = (), [system, *before]
        content: JsonValue = "\n\n".join([*filter(None, before), item.question])
        if item.image is not None:
            image: JsonValue = {"type": "image_url", "image_url": {"url": item.image}}
            content = [{"type": "text", "text": content}, image]
        return (*roles, {"role": "user", "content": content})


def output_format(name: str) -> str:
    """Return how an answer of this toolchain or format is to be written and will be checked."""
    return (PACKAGE / "prompts" / f"coding_format_{name}.txt").read_text("utf-8").strip()


def _guidelines(suite: Suite, settings: Settings, experiment: Experiment) -> Guidelines | None:
    """An experiment's own file, or the suite's; a suite that names none need not have any.

    Questions in a file or on the hub have none, unless their suite names them.
    """
    root = settings.path(suite.path) if suite.path else settings.root
    has_some = suite.guidelines is not None or (suite.path is not None and root.is_dir())
    if experiment.guidelines is False or not (has_some or suite.kind == "coding"):
        return None
    chosen = experiment.guidelines if isinstance(experiment.guidelines, Path) else suite.guidelines
    path = settings.path(chosen) if chosen else guidelines_of(root) or root / GUIDELINES
    if not chosen and not path.exists():
        return None
    try:
        return Guidelines.read(path)
    except GuidelinesError as error:
        raise SettingsError(f"The guidelines of the suite '{suite.name}': {error}") from None
