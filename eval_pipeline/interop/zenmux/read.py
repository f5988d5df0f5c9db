"""Results folders of zenmux-benchmark, read file by file within limits: none of it is trusted."""

import json
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid5

import orjson
from pydantic import TypeAdapter, ValidationError

from eval_pipeline.errors import MendableError
from eval_pipeline.records.model import ModelId
from eval_pipeline.records.run import PlanFilter

ANSWER_FILES, JUDGED_FILES = "predictions", "judged"
_PATTERNS = {ANSWER_FILES: "hle_*.json", JUDGED_FILES: "judged_hle_*.json"}
_STAMP = re.compile(r"\d{8}_\d{6}")
_RUNS = UUID("6f6d2a3e-6a0b-5b1c-9d57-2f9a1c0e7b44")
"""Ids in this space are of version 5; those of Dagster's runs are of version 4."""
_METADATA = {"evaluation_metadata", "judging_metadata", "metrics"}
"""Keys beside the entries of files whose entries are not under a key of their own."""
MOST_BYTES = 200 * 10**6
"""Of one file: a model's answers to thousands of questions are a tenth of it."""
MOST_QUESTIONS = 100_000
LONGEST_ID = 200
_MODEL: TypeAdapter[str] = TypeAdapter(ModelId)

Entry = dict[str, Any]
"""A JSON object of which nothing is known for certain."""


class ImportFolderError(MendableError):
    """The folder has no results; the message says what is expected."""


class UnreadableError(Exception):
    """A file is left out; the message says why."""


class Problem(NamedTuple):
    """A file, or a part of one, that was left out, and why."""

    file: str
    problem: str


def _read_object(path: Path) -> Entry:
    try:
        content = _content(path)
    except OSError as error:
        raise UnreadableError(f"It cannot be read ({error.strerror}).") from None
    try:
        parsed: object = orjson.loads(content)
    except orjson.JSONDecodeError:
        parsed = _parse_leniently(content)
    if not isinstance(parsed, dict):
        raise UnreadableError("It is no JSON object.")
    return parsed


def _content(path: Path) -> bytes:
    about = path.lstat()
    if stat.S_ISLNK(about.st_mode):
        raise UnreadableError("It is a link, and links are not followed.")
    if not stat.S_ISREG(about.st_mode):
        raise UnreadableError("It is no regular file.")
    if about.st_size > MOST_BYTES:
        size, most = f"{about.st_size / 1e6:,.0f} MB", f"{MOST_BYTES / 1e6:,.0f} MB"
        raise UnreadableError(f"It has {size}; up to {most} are read.")
    # Should it have been replaced meanwhile: a link is not followed, a pipe not waited for.
    flags = os.O_NOFOLLOW | os.O_NONBLOCK
    with open(path, "rb", opener=lambda name, mode: os.open(name, mode | flags)) as file:
        return file.read(MOST_BYTES + 1)


def _parse_leniently(content: bytes) -> object:
    """Parse what Python's json writes and JSON does not know: NaN, and halves of characters."""
    try:
        return json.loads(content)
    except RecursionError:
        raise UnreadableError("It is nested too deeply.") from None
    except ValueError as error:
        raise UnreadableError(f"It is damaged: {str(error)[:200]}.") from None


def object_in(entry: Entry, name: str) -> Entry:
    """Return the object of that name; an empty one if there is none."""
    found = entry.get(name)
    return found if isinstance(found, dict) else {}


def text_in(entry: Entry, name: str) -> str | None:
    """Return the text of that name, if it is one and not empty."""
    found = entry.get(name)
    return found if isinstance(found, str) and found else None


def number_in(entry: Entry, name: str, most: float) -> float | None:
    """Return the number of that name, if it is one from 0 to `most`."""
    found = entry.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return found if 0 <= found <= most else None


def count_in(entry: Entry, name: str) -> int | None:
    """Return the whole number of that name, if it is one and not negative."""
    found = number_in(entry, name, 10**12)
    return int(found) if found is not None and found == int(found) else None


class ModelFile(NamedTuple):
    """A predictions or judged file."""

    model: str | None
    written_at: datetime | None
    judge: str | None
    metadata: Entry
    entries: Mapping[str, Entry]
    others: int
    """How many entries are no answers."""


@dataclass(frozen=True)
class ResultsFolder:
    """One timestamped folder; problems in it are noted, and the rest is read."""

    path: Path
    problems: list[Problem] = field(default_factory=list)

    @cached_property
    def stamp(self) -> str | None:
        """The time in its name or in its files' names; None if no name has one."""
        for text in (self.path.resolve().name, *(path.name for path in self._files("*.json"))):
            for found in _STAMP.findall(text):
                if _moment(found) is not None:
                    return str(found)
        return None

    @property
    def began_at(self) -> datetime:
        """The same as a moment; there it is local time, but of an unknown time zone."""
        return _moment(self.stamp or "") or datetime.now(UTC)

    @property
    def run_id(self) -> str:
        """The id of its runs, the same whenever it is imported."""
        return str(uuid5(_RUNS, self.stamp or ""))

    @cached_property
    def _asked(self) -> Entry:
        return self._first("question_ids_*.json")

    @cached_property
    def question_ids(self) -> list[str]:
        """The ids of the questions that were to be asked, else of all that have an answer."""
        listed = self._asked.get("question_ids")
        if isinstance(listed, list) and listed:
            ids = [one for one in listed if _is_item_id(one)]
            if len(ids) < len(listed):
                self.note("question_ids", f"{len(listed) - len(ids)} ids are no texts.")
            return list(dict.fromkeys(ids))
        found = (read.entries for part in _PATTERNS for _, read in self.model_files(part))
        return list(dict.fromkeys(one for entries in found for one in entries))

    @property
    def plan_filter(self) -> PlanFilter:
        """The part of the data set that the questions are, as far as it is known."""
        said = object_in(self._asked, "run_metadata")
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
        return {name: object_in(found, name) for name in found}

    @cached_property
    def results(self) -> Mapping[str, Entry]:
        """The rows of the folder's own summary, by model."""
        listed = self._first("metrics_summary_*.json").get("model_results")
        found = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        return {name: one for one in found if (name := text_in(one, "model_identifier"))}

    def model_files(
        self, part: str, but: Collection[Path] = ()
    ) -> Iterator[tuple[Path, ModelFile]]:
        """Yield the files of one kind, each read when it is its turn; damaged ones are noted."""
        folder = self.path / part
        if folder.is_symlink():
            self.note(part, "It is a link, and links are not followed.")
            return
        for path in sorted(folder.glob(_PATTERNS[part])):
            if path not in but and (read := self.read(path, part)) is not None:
                yield path, read

    def read(self, path: Path, part: str) -> ModelFile | None:
        """Return one of these files; None, with a note, if it cannot be read."""
        try:
            found = _model_file(_read_object(path), part)
        except UnreadableError as error:
            self.note(self.name_of(path), str(error))
            return None
        if found.others:
            self.note(self.name_of(path), f"{found.others} entries in it are no answers.")
        return found

    def answers_of(self, model: str) -> str:
        """Return the name of the file with the model's answers."""
        return f"hle_{model.replace('/', '_').replace(':', '_')}_{self.stamp}.json"

    def name_of(self, path: Path) -> str:
        """Return the file's path in this folder."""
        return str(path.relative_to(self.path))

    def note(self, file: str, problem: str) -> None:
        """Note a problem, unless it is noted already."""
        if (noted := Problem(f"{self.path.name}/{file}", problem)) not in self.problems:
            self.problems.append(noted)

    def check_model(self, file: str, name: str) -> str | None:
        """Return the name if it can be a model id here; else note it."""
        try:
            return _MODEL.validate_python(name)
        except ValidationError:
            self.note(file, f"{name[:120]!r} cannot be used as the id of a model.")
            return None

    def _files(self, pattern: str) -> list[Path]:
        return sorted(path for path in self.path.glob(pattern) if not path.name.startswith("."))

    def _first(self, pattern: str) -> Entry:
        for path in self._files(pattern):
            try:
                return _read_object(path)
            except UnreadableError as error:
                self.note(path.name, str(error))
        return {}


def results_folders(path: Path) -> list[ResultsFolder]:
    """Return the folder itself if it has results, else the folders in it that do, oldest first."""
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


def _is_item_id(found: object) -> bool:
    return isinstance(found, str) and 0 < len(found) <= LONGEST_ID and found.isprintable()


def _has_results(path: Path) -> bool:
    return any((path / part).is_dir() for part in _PATTERNS)


def _model_file(content: Entry, part: str) -> ModelFile:
    """Parse either form: with metadata or, as in the beginning, nothing but the entries."""
    name, about = "predictions", object_in(content, "evaluation_metadata")
    metadata = about
    if part == JUDGED_FILES:
        name, about = "judged_predictions", object_in(content, "judging_metadata")
        metadata = object_in(about, "evaluation_metadata")
    found = content.get(name, content)
    if not isinstance(found, dict):
        raise UnreadableError(f"Its {name} are no JSON object.")
    entries = {
        one: entry
        for one, entry in found.items()
        if _is_item_id(one) and isinstance(entry, dict) and isinstance(entry.get("response"), str)
    }
    if len(entries) > MOST_QUESTIONS:
        raise UnreadableError(f"It has more than {MOST_QUESTIONS} entries.")
    return ModelFile(
        text_in(metadata, "model_identifier") or _model_in(entries),
        _time(text_in(about, "timestamp")),
        text_in(about, "judge_model"),
        metadata,
        entries,
        len(found.keys() - _METADATA) - len(entries),
    )


def _model_in(entries: Mapping[str, Entry]) -> str | None:
    """Return the model that all entries name; repaired ones may name it without its provider."""
    said = {text_in(entry, "model") or "" for entry in entries.values()} - {""}
    names = {name for name in said if ":" in name} or said
    return names.pop() if len(names) == 1 else None


def _moment(stamp: str) -> datetime | None:
    try:
        return datetime.strptime(stamp, "%Y%m%d_%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def _time(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


class Unit(NamedTuple):
    """The files of one model."""

    model: str
    answered: ModelFile | None
    judged: ModelFile | None

    @property
    def files(self) -> list[ModelFile]:
        return [one for one in (self.answered, self.judged) if one is not None]

    @property
    def metadata(self) -> Entry:
        """The metadata of the run there: settings, endpoint and times."""
        return self.files[0].metadata if self.files else {}


def units(folder: ResultsFolder) -> Iterator[Unit]:
    """Yield the files of each model; models that failed as a whole have none."""
    seen: set[str] = set()
    for unit in _with_files(folder):
        if unit.answered and unit.model in seen:
            folder.note(unit.model, "There are several prediction files of it.")
        seen.add(unit.model)
        yield unit
    for name, result in folder.results.items():
        if (
            text_in(result, "error")
            and name not in seen
            and folder.check_model("metrics_summary", name)
        ):
            yield Unit(name, None, None)


def _with_files(folder: ResultsFolder) -> Iterator[Unit]:
    paired: set[Path] = set()
    for path, answered in folder.model_files(ANSWER_FILES):
        beside = folder.path / JUDGED_FILES / f"judged_{path.name}"
        judged = folder.read(beside, JUDGED_FILES) if beside.exists() else None
        said = answered.model or (judged.model if judged else None)
        model = _model_of(folder, path, said)
        if judged and judged.model not in (None, model):
            judged = None  # it is of another model, and its turn comes later
        else:
            paired.add(beside)
        if model is not None:
            yield Unit(model, answered, judged)
    for path, judged in folder.model_files(JUDGED_FILES, but=paired):
        if (model := _model_of(folder, path, judged.model)) is not None:
            yield Unit(model, None, judged)


def _model_of(folder: ResultsFolder, path: Path, said: str | None) -> str | None:
    """Return the model that the file names, or that a list has a file of this name for."""
    listed = (*folder.listed_models, *folder.results)
    name = said or next((one for one in listed if path.name.endswith(folder.answers_of(one))), None)
    if name is None:
        folder.note(folder.name_of(path), "Nothing in it says of which model it is.")
        return None
    return folder.check_model(folder.name_of(path), name)
