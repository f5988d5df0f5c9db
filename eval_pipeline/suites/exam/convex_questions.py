"""Questions beside the tasks of a convex-evals checkout (questions.json) -> raw rows."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from eval_pipeline.errors import DatasetError
from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.base import Record, field_error
from eval_pipeline.suites.exam.files import BadRow, Row, Rows, Source

BANK = "questions.json"
CLUSTER = "source_eval"
"""The column that says with which others a question is about the same task."""
LETTERS = "ABCD"
MOST_BYTES = 1 << 20

_FOLDERS = "[0-9][0-9][0-9]-*/[0-9][0-9][0-9]-*"
_NUMBER = len("001-")

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Identifier = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,60}$")]


class Option(Record):
    """One of the answers to choose from, and why it is right or wrong."""

    id: Identifier
    text: Words
    rationale: Words


class Question(Record):
    """What is decided; of all this only context, question and the options' texts are asked."""

    id: Identifier
    concept: Words
    context: Annotated[str, StringConstraints(strip_whitespace=True)]
    question: Words
    options: Annotated[tuple[Option, ...], Field(min_length=len(LETTERS), max_length=len(LETTERS))]
    correct: Annotated[Identifier, Field(alias="correctOptionId")]
    references: Annotated[tuple[Words, ...], Field(alias="sourceReferences")]

    @model_validator(mode="after")
    def _told_apart(self) -> Self:
        for what, said in (
            ("ids", [option.id for option in self.options]),
            ("texts", [option.text for option in self.options]),
        ):
            if len(set(said)) < len(said):
                raise ValueError(f"the {what} of its options must differ")
        if self.correct not in [option.id for option in self.options]:
            raise ValueError(f"correctOptionId names no option: {self.correct!r}")
        return self


class Bank(Record):
    """All questions about one task."""

    version: Literal[1]
    source: Annotated[str, Field(alias="sourceEval")]
    notes: Annotated[Words, Field(alias="coverageNotes")]
    questions: Annotated[tuple[Question, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        counts = Counter(question.id for question in self.questions)
        if twice := [name for name, count in counts.items() if count > 1]:
            raise ValueError(f"two questions have the id {twice[0]!r}")
        return self


def bank_sources(root: Path, shown: str, setting: str) -> list[Source]:
    """The banks in a folder of tasks, in the order of the tasks."""
    found = sorted(root.glob(f"{_FOLDERS}/{BANK}"))
    if not found:
        raise DatasetError(
            f"{shown}: there is no {BANK} in it; a folder of questions is that of a convex-evals "
            f"checkout, with folders such as 001-queries/001-joins ({setting})."
        )
    return [
        Source(path, f"{shown}/{path.relative_to(root).as_posix()}", setting, CLUSTER)
        for path in found
    ]


def read_bank(source: Source) -> Rows:
    """A row for each question, or one for the bank if that can not be read."""
    task = f"{source.path.parent.parent.name}/{source.path.parent.name}"
    try:
        bank = Bank.model_validate_json(_content(source.path))
        if bank.source != task:
            raise ValueError(f"sourceEval must be {task}, as its folder, not {bank.source!r}")
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            yield BadRow(0, field_error(detail))
    except (OSError, ValueError) as error:
        yield BadRow(0, getattr(error, "strerror", None) or str(error))
    else:
        yield from _rows(bank)


def _content(path: Path) -> bytes:
    if path.resolve() != path.parent.parent.parent.resolve() / Path(*path.parts[-3:]):
        raise ValueError("is a link, or in a folder that is one; put the file itself there")
    if not path.is_file():
        raise ValueError("is not a file")
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"is larger than {MOST_BYTES} bytes")
    return path.read_bytes()


def _rows(bank: Bank) -> Iterator[Row]:
    for number, question in enumerate(bank.questions, start=1):
        item_id = f"{bank.source}/{question.id}"
        # By a hash: the same for every model, and the right one is not always the same letter.
        drawn = sorted(question.options, key=lambda option: fingerprint(item_id, option.id))
        options = dict(zip(LETTERS, drawn, strict=True))
        (answer,) = (letter for letter, one in options.items() if one.id == question.correct)
        yield Row(
            number,
            {
                "id": item_id,
                "question": _asked(question, {name: one.text for name, one in options.items()}),
                "answer": answer,
                "answer_type": "multipleChoice",
                "category": bank.source.partition("/")[0][_NUMBER:],
                "rationale": "\n".join(f"{name}: {one.rationale}" for name, one in options.items()),
                "raw_subject": question.concept,
                CLUSTER: bank.source,
            },
        )


def _asked(question: Question, options: Mapping[str, str]) -> str:
    """Context, question and options, such that the rules find exactly these options.

    They go by the last lines that begin with letters. Options of several lines, which may be code
    with such lines in it, are therefore laid out before, and named once more at the end.
    """
    laid_out: list[str] = []
    if any("\n" in text for text in options.values()):
        laid_out = [f"Option {letter}:\n\n{text}" for letter, text in options.items()]
        options = {letter: f"Option {letter}" for letter in options}
    named = "\n".join(f"{letter}. {text}" for letter, text in options.items())
    parts = (question.context, question.question, *laid_out, named)
    return "\n\n".join(part for part in parts if part)
