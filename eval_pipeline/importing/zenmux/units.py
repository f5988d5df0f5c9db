"""The files of each model in a results folder, and which model that is."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from eval_pipeline.importing.zenmux.files import Entry, object_in, text_in
from eval_pipeline.importing.zenmux.folders import (
    ANSWER_FILES,
    JUDGED_FILES,
    ModelFile,
    ResultsFolder,
)
from eval_pipeline.records import ModelId

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
