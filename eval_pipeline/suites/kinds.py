"""The only module that knows there are two kinds of eval, besides the packages of each."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pydantic import JsonValue

from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import ExamQuestion, Item
from eval_pipeline.records.model import Model
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.settings.sections import Experiment, Suite
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.coding.convex_checkout import guidelines_of, is_checkout
from eval_pipeline.suites.coding.dataset import load_tasks
from eval_pipeline.suites.coding.guidelines import Guidelines, GuidelinesError
from eval_pipeline.suites.coding.messages import PROJECT_FORMAT, output_format, task_messages
from eval_pipeline.suites.coding.toolchains.registry import TOOLCHAINS
from eval_pipeline.suites.exam.dataset import load_questions
from eval_pipeline.suites.exam.messages import question_messages

GUIDELINES = "guidelines.md"
"""Where a suite in a folder has its guidelines, unless its settings say otherwise."""

# By name, so that a field which items get later does not change the version of older ones.
_HASHED = {
    "exam": {
        "id",
        "question",
        "image",
        "answer",
        "answer_type",
        "category",
        "rationale",
        "raw_subject",
    },
    "coding": {"id", "question", "category", "toolchain", "grader_version"},
}


def load_items(suite: Suite, settings: Settings) -> Iterator[Item]:
    """Every item of a suite, in order; whether all are right, the end tells."""
    return (
        load_tasks(suite, settings) if suite.kind == "coding" else load_questions(suite, settings)
    )


def decisive(item: Item) -> dict[str, JsonValue]:
    """All of an item that decides what a pass on it means."""
    hashed = _HASHED[item.kind]
    return item.model_dump(include=hashed if item.cluster is None else {*hashed, "cluster"})


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
        told = {
            kind: {
                suite.name: guidelines
                for suite in settings.suites
                if suite.kind == kind
                and (guidelines := _guidelines(suite, settings, experiment)) is not None
            }
            for kind in ("exam", "coding")
        }
        suites = [suite for suite in settings.suites if suite.kind == "coding"]
        if not suites:
            return cls(exam, exam_guidelines=told["exam"])
        return cls(
            exam,
            read_prompt(settings, experiment.coding_prompt),
            told["coding"],
            told["exam"],
            (*cls.formats, *((PROJECT_FORMAT,) if _any_checkout(suites, settings) else ())),
        )

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
        """The item as chat messages, in the form that the model can take."""
        match item:
            case ExamQuestion():
                told = self.exam_guidelines.get(item.suite)
                return question_messages(item, model, self.exam, told.whole if told else None)
            case CodingTask():
                guidelines = self.guidelines.get(item.suite)
                return task_messages(
                    item,
                    model,
                    system_prompt=self.coding,
                    output_format=output_format(
                        PROJECT_FORMAT if item.is_project else item.toolchain
                    ),
                    guidelines=guidelines.text(item.toolchain) if guidelines else None,
                )


def _any_checkout(suites: Iterable[Suite], settings: Settings) -> bool:
    return any(suite.path and is_checkout(settings.path(suite.path)) for suite in suites)


def _guidelines(suite: Suite, settings: Settings, experiment: Experiment) -> Guidelines | None:
    """An experiment's own file, or the suite's; a suite that names none need not have any.

    Questions in a file or on the hub have none, unless their suite names them.
    """
    root = settings.path(suite.path) if suite.path else settings.root
    has_some = suite.guidelines is not None or (suite.path is not None and root.is_dir())
    if experiment.guidelines is False or not (has_some or suite.kind == "coding"):
        return None
    usual = guidelines_of(root) or root / GUIDELINES
    match experiment.guidelines, suite.guidelines:
        case (Path() as chosen, _) | (_, Path() as chosen):
            path = settings.path(chosen)
        case _ if usual.exists():
            path = usual
        case _:
            return None
    try:
        return Guidelines.read(path)
    except GuidelinesError as error:
        raise SettingsError(f"The guidelines of the suite '{suite.name}': {error}") from None
