"""A results folder of zenmux-benchmark: what one launch there left behind, read file by file."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from uuid import UUID, uuid5

from pydantic import TypeAdapter, ValidationError

from eval_pipeline.errors import MendableError
from eval_pipeline.interop.zenmux.files import (
    Entry,
    Problem,
    UnreadableError,
    count_in,
    object_in,
    read_object,
    text_in,
)
from eval_pipeline.records.model import ModelId
from eval_pipeline.records.run import PlanFilter

ANSWER_FILES, JUDGED_FILES = "predictions", "judged"
_PATTERNS = {ANSWER_FILES: "hle_*.json", JUDGED_FILES: "judged_hle_*.json"}
_STAMP = re.compile(r"\d{8}_\d{6}")
STAMPED = "%Y%m%d_%H%M%S"
_RUNS = UUID("6f6d2a3e-6a0b-5b1c-9d57-2f9a1c0e7b44")
"""Ids in this space are of version 5; those of Dagster's runs are of version 4."""
_METADATA = {"evaluation_metadata", "judging_metadata", "metrics"}
"""What stands beside the entries where these have no name of their own."""
MOST_QUESTIONS = 100_000
LONGEST_ID = 200


class ImportFolderError(MendableError):
    """It is no folder of results; the message says what is expected."""


class ModelFile(NamedTuple):
    """A predictions or judged file: whose it is, when it was written, by whom it was judged."""

    model: str | None
    written_at: datetime | None
    judge: str | None
    metadata: Entry
    entries: Mapping[str, Entry]
    others: int
    """How many entries are no answers, whatever they are."""


class Result(NamedTuple):
    """What the folder's own summary says of a model."""

    error: str | None
    metrics: Entry
    answers: str
    """How the file with its answers is called; empty if there is none."""


@dataclass(frozen=True)
class ResultsFolder:
    """One timestamped folder; what is wrong in it is noted, and the rest taken."""

    path: Path
    problems: list[Problem] = field(default_factory=list)

    @cached_property
    def stamp(self) -> str | None:
        """When that launch began, by which all its files are called; None if nothing tells."""
        for text in (self.path.resolve().name, *(path.name for path in self._files("*.json"))):
            for found in _STAMP.findall(text):
                if _moment(found) is not None:
                    return str(found)
        return None

    @property
    def began_at(self) -> datetime:
        """The same as a moment; there it is local time, and which is not said."""
        return _moment(self.stamp or "") or datetime.now(UTC)

    @property
    def run_id(self) -> str:
        """The id of its runs, the same whenever it is imported."""
        return str(uuid5(_RUNS, self.stamp or ""))

    @cached_property
    def asked(self) -> Entry:
        """The file that lists the questions; empty if there is none."""
        return self._first("question_ids_*.json")

    @cached_property
    def question_ids(self) -> list[str]:
        """The ids of the questions that were to be asked, else of all that have an answer."""
        listed = self.asked.get("question_ids")
        if isinstance(listed, list) and listed:
            ids = [one for one in listed if is_item_id(one)]
            if len(ids) < len(listed):
                self.note("question_ids", f"{len(listed) - len(ids)} ids are no texts.")
            return list(dict.fromkeys(ids))
        found = (read.entries for part in _PATTERNS for _, read in self.model_files(part))
        return list(dict.fromkeys(one for entries in found for one in entries))

    @property
    def plan_filter(self) -> PlanFilter:
        """Which part of the data set they are, as far as it is said."""
        said = object_in(self.asked, "run_metadata")
        most = count_in(said, "max_samples") or None
        return PlanFilter(text_only=said.get("text_only") is True, max_samples=most)

    @cached_property
    def listed_models(self) -> Mapping[str, Entry]:
        """The models that were to be asked, with what was known of each."""
        found = self._first("available_models_*.json").get("available_models")
        if isinstance(found, list):  # an older form, of names alone
            return {name: {} for name in found if isinstance(name, str)}
        if not isinstance(found, dict):
            return {}
        return {name: said if isinstance(said, dict) else {} for name, said in found.items()}

    @cached_property
    def results(self) -> Mapping[str, Result]:
        """What the folder's own summary says, by model."""
        listed = self._first("metrics_summary_*.json").get("model_results")
        rows = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        return {
            name: Result(
                text_in(one, "error"),
                object_in(one, "metrics"),
                (text_in(one, "predictions_file") or "").rpartition("/")[2],
            )
            for one in rows
            if (name := text_in(one, "model_identifier"))
        }

    def model_files(
        self, part: str, but: Collection[Path] = ()
    ) -> Iterator[tuple[Path, ModelFile]]:
        """The files of one kind, each read when it is its turn; a damaged one is noted."""
        folder = self.path / part
        if folder.is_symlink():
            self.note(part, "It is a link, and links are not followed.")
            return
        for path in sorted(folder.glob(_PATTERNS[part])):
            if path not in but and (read := self.read(path, part)) is not None:
                yield path, read

    def read(self, path: Path, part: str) -> ModelFile | None:
        """One of these files; None, and a note, if it can not be read."""
        try:
            found = _model_file(read_object(path), part)
        except UnreadableError as error:
            self.note(self.name_of(path), str(error))
            return None
        if found.others:
            self.note(self.name_of(path), f"{found.others} entries in it are no answers.")
        return found

    def answers_of(self, model: str) -> str:
        """How the file with the model's answers is called."""
        return f"hle_{safe_name(model)}_{self.stamp}.json"

    def name_of(self, path: Path) -> str:
        """How the file is called in this folder."""
        return str(path.relative_to(self.path))

    def note(self, file: str, problem: str) -> None:
        """Notes a problem once."""
        if (noted := Problem(f"{self.path.name}/{file}", problem)) not in self.problems:
            self.problems.append(noted)

    def _files(self, pattern: str) -> list[Path]:
        return sorted(path for path in self.path.glob(pattern) if not path.name.startswith("."))

    def _first(self, pattern: str) -> Entry:
        for path in self._files(pattern):
            try:
                return read_object(path)
            except UnreadableError as error:
                self.note(path.name, str(error))
        return {}


def results_folders(path: Path) -> list[ResultsFolder]:
    """The folder itself if it is one of results, else those in it, the oldest first."""
    if not path.is_dir():
        raise ImportFolderError(f"{path} is no folder.")
    if _has_results(path):
        return [ResultsFolder(path)]
    found = [one for one in sorted(path.iterdir()) if not one.is_symlink() and _has_results(one)]
    if not found:
        raise ImportFolderError(
            f"{path} has no results of zenmux-benchmark: name one of its folders, such as "
            "results/20250922_122904 with predictions/ and judged/ in it, or the one above them."
        )
    return [ResultsFolder(one) for one in found]


def safe_name(model: str) -> str:
    """The model as file names have it, from which it can not be told again."""
    return model.replace("/", "_").replace(":", "_")


def is_item_id(found: object) -> bool:
    """Whether a question may be called that."""
    return isinstance(found, str) and 0 < len(found) <= LONGEST_ID and found.isprintable()


def _has_results(path: Path) -> bool:
    return any((path / part).is_dir() for part in _PATTERNS)


def _model_file(content: Entry, part: str) -> ModelFile:
    """In either form: with metadata, or, as in the beginning, nothing but the entries."""
    name = "judged_predictions" if part == JUDGED_FILES else "predictions"
    said = object_in(content, "judging_metadata" if part == JUDGED_FILES else "evaluation_metadata")
    metadata = object_in(said, "evaluation_metadata") if part == JUDGED_FILES else said
    found = content.get(name, content)
    if not isinstance(found, dict):
        raise UnreadableError(f"Its {name} are no JSON object.")
    entries = {one: entry for one, entry in found.items() if _is_entry(one, entry)}
    if len(entries) > MOST_QUESTIONS:
        raise UnreadableError(f"It has more than {MOST_QUESTIONS} entries.")
    model = text_in(metadata, "model_identifier") or _model_in(entries)
    written = _time(text_in(said, "timestamp"))
    others = len(found.keys() - _METADATA) - len(entries)
    return ModelFile(model, written, text_in(said, "judge_model"), metadata, entries, others)


def _is_entry(name: str, entry: object) -> bool:
    return is_item_id(name) and isinstance(entry, dict) and isinstance(entry.get("response"), str)


def _model_in(entries: Mapping[str, Entry]) -> str | None:
    """What all entries say; of some that were repaired only the part before the provider."""
    said = {text_in(entry, "model") or "" for entry in entries.values()} - {""}
    pinned = {name for name in said if ":" in name}
    names = pinned or said
    return names.pop() if len(names) == 1 else None


def _moment(stamp: str) -> datetime | None:
    try:
        return datetime.strptime(stamp, STAMPED).replace(tzinfo=UTC)
    except ValueError:
        return None


def _time(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


_MODEL: TypeAdapter[str] = TypeAdapter(ModelId)


class Unit(NamedTuple):
    """The files of one model."""

    model: str
    answered: ModelFile | None
    judged: ModelFile | None

    @property
    def has_entries(self) -> bool:
        """Whether anything was asked."""
        return any(one is not None and one.entries for one in (self.answered, self.judged))

    @property
    def metadata(self) -> Entry:
        """What is said of how the model was asked."""
        return next((one.metadata for one in (self.answered, self.judged) if one), {})


def units(folder: ResultsFolder) -> Iterator[Unit]:
    """The files of each model; models that failed as a whole have none."""
    seen: set[str] = set()
    paired: set[Path] = set()
    ways = (_answered(folder, paired), _only_judged(folder, paired), _failed(folder))
    for unit in chain(*ways):
        if unit.answered and unit.model in seen:
            folder.note(unit.model, "There are several prediction files of it.")
        if unit.answered or unit.judged or unit.model not in seen:
            seen.add(unit.model)
            yield unit


def _answered(folder: ResultsFolder, paired: set[Path]) -> Iterator[Unit]:
    for path, answered in folder.model_files(ANSWER_FILES):
        beside = folder.path / JUDGED_FILES / f"judged_{path.name}"
        judged = folder.read(beside, JUDGED_FILES) if beside.exists() else None
        model = _model_of(folder, path, answered, judged)
        if judged and judged.model not in (None, model):
            judged = None  # whoever it is of, it comes later
        else:
            paired.add(beside)
        if model is not None:
            yield Unit(model, answered, judged)


def _only_judged(folder: ResultsFolder, paired: set[Path]) -> Iterator[Unit]:
    for path, judged in folder.model_files(JUDGED_FILES, but=paired):
        if (model := _model_of(folder, path, judged, None)) is not None:
            yield Unit(model, None, judged)


def _failed(folder: ResultsFolder) -> Iterator[Unit]:
    for name, result in folder.results.items():
        if result.error and checked(folder, "metrics_summary", name):
            yield Unit(name, None, None)


def _model_of(
    folder: ResultsFolder, path: Path, first: ModelFile, second: ModelFile | None
) -> str | None:
    """Whose file it is, by what stands in it; by its name only if a list tells what that means."""
    said = first.model or (second.model if second else None)
    name = said or _listed_as(folder, path)
    if name is None:
        folder.note(folder.name_of(path), "Nothing in it says of which model it is.")
        return None
    return checked(folder, folder.name_of(path), name)


def _listed_as(folder: ResultsFolder, path: Path) -> str | None:
    for name in (*folder.listed_models, *folder.results):
        if path.name.endswith(folder.answers_of(name)):
            return name
    return None


def checked(folder: ResultsFolder, file: str, name: str) -> str | None:
    """The name if a model may have it here; else it is noted."""
    try:
        return _MODEL.validate_python(name)
    except ValidationError:
        folder.note(file, f"{name[:120]!r} can not be the id of a model here.")
        return None


def references_in(folder: ResultsFolder) -> dict[str, str]:
    """The reference answers, as far as judges were told them."""
    found: dict[str, str] = {}
    wanted = set(folder.question_ids)
    for _, judged in folder.model_files(JUDGED_FILES):
        for item_id, entry in judged.entries.items():
            reference = text_in(object_in(entry, "judge_response"), "correct_answer")
            if reference and item_id in wanted:
                found.setdefault(item_id, reference)
        if len(found) == len(wanted):
            break
    return found
