"""A run as a results folder of zenmux-benchmark: what `taking` reads, written."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import orjson

from eval_pipeline.benchmark import past_version
from eval_pipeline.errors import MendableError
from eval_pipeline.importing.zenmux.files import Entry
from eval_pipeline.importing.zenmux.folders import STAMPED, safe_name
from eval_pipeline.importing.zenmux.shapes import answer_entry, judged_entry, stamp
from eval_pipeline.importing.zenmux.statistics import NOT_ANSWERED, NOT_JUDGED, statistics_files
from eval_pipeline.journal import RUNS, Journal
from eval_pipeline.journal.files import remove, sync
from eval_pipeline.records import FAILED_THERE, Run, now
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.runs import FoundRun
from eval_pipeline.results.stats.calibration import as_published

SUITABLE = "chat.completions"


class ZenmuxExportError(MendableError):
    """The run has no place in that format; the message says why."""


class Written(NamedTuple):
    """A model's files, and what is in them."""

    model: str
    file: str
    predictions: int
    judgements: int


@dataclass(frozen=True)
class Exporter:
    """Where runs are read."""

    db: duckdb.DuckDBPyConnection
    journal: Journal
    judge: str | None = None

    def write(self, found: Sequence[FoundRun], target: Path) -> tuple[Path, list[Written]]:
        """Writes all models of a run into a folder of its own below the target; whole or not."""
        runs = [next(self.journal.read_file(RUNS, one.model, one.run_id)) for one in found]
        name = f"{runs[0].opened_at:{STAMPED}}"
        with _whole(target / name) as folder:
            models = [_ModelExport(self, run, folder, name) for run in runs]
            _refuse_the_same_file(models)
            written = [one.write() for one in models]
            _write(folder / f"question_ids_{name}.json", _question_ids(models[0]))
            _write(folder / f"available_models_{name}.json", _available(models))
            results = [one.result for one in models]
            summary = {"summary_metadata": {"timestamp": stamp(now())}, "model_results": results}
            _write(folder / f"metrics_summary_{name}.json", summary)
            counts = {one.run.model: one.counts for one in models}
            for file, content in statistics_files(counts, results, name):
                _write(folder / file, content)
        return target / name, written


@dataclass(frozen=True)
class _ModelExport:
    exporter: Exporter
    run: Run
    folder: Path
    name: str

    @cached_property
    def suite(self) -> str:
        """The one suite of questions that the run is about; code has no place there."""
        run = self.run
        version = past_version(self.exporter.journal, run.benchmark_version)
        found = [one for one in _suites(run) if one not in version.coding_suites]
        who = f"Run {run.run_id[:8]} of {run.model}"
        if not found:
            raise ZenmuxExportError(f"{who} has no questions: that format has no code.")
        if len(found) > 1:
            raise ZenmuxExportError(f"{who} has several suites of questions: {', '.join(found)}.")
        if run.samples > 1:
            raise ZenmuxExportError(f"{who} asked {run.samples} times; that format has one answer.")
        return found[0]

    @cached_property
    def ids(self) -> list[str]:
        return [key.item_id for key in self.run.plan if key.suite == self.suite]

    @cached_property
    def found(self) -> Mapping[str, Mapping[str, Any]]:
        given = {"run_id": self.run.run_id, "model": self.run.model, "suite": self.suite}
        entries = query(
            self.exporter.db, "summaries/zenmux_entries", {**given, "judge": self.exporter.judge}
        )
        return {row["item_id"]: row for row in rows(entries)}

    @cached_property
    def described(self) -> Mapping[str, Any]:
        """The model as the catalog has it."""
        found = query(self.exporter.db, "summaries/zenmux_model", {"model": self.run.model})
        return next(iter(rows(found)), {})

    @cached_property
    def stem(self) -> str:
        return f"{safe_name(self.run.model)}_{self.name}"

    def path(self, part: str) -> str:
        """Where the model's file of that part is, in the folder."""
        return f"{part}/{'judged_' if part == 'judged' else ''}hle_{self.stem}.json"

    def write(self) -> Written:
        """Both files of the model."""
        said = [one for one in self.ids if one in self.found]
        answers = {one: answer_entry(self.found[one], self.run.model) for one in said}
        judged = {one: judged_entry(answers[one], self.found[one]) for one in said}
        metadata = self._metadata()
        content = {"evaluation_metadata": metadata, "predictions": answers}
        _write(self.folder / self.path("predictions"), content)
        about = {**self._judging(), "evaluation_metadata": metadata}
        content = {"judging_metadata": about, "judged_predictions": judged}
        _write(self.folder / self.path("judged"), content)
        verdicts = sum("judge_response" in one for one in judged.values())
        return Written(self.run.model, self.path("predictions"), len(answers), verdicts)

    def _metadata(self) -> Entry:
        told, model = self.run.parameters, self.described
        return {
            "timestamp": stamp(
                max((one["finished_at"] for one in self.found.values()), default=None)
            ),
            "model_identifier": self.run.model,
            "endpoint": {
                "provider_slug": model.get("provider"),
                "provider": model.get("provider"),
                "context_length": model.get("context_length"),
                "max_completion_tokens": model.get("max_output_tokens"),
                "supports_streaming": bool(model.get("streaming", True)),
                "suitable_api": SUITABLE,
            },
            "dataset_config": self.dataset,
            "evaluation_config": {
                "max_completion_tokens": told.get("max_tokens"),
                "temperature": told.get("temperature"),
            },
        }

    @property
    def dataset(self) -> Entry:
        """Which questions they are."""
        chosen = self.run.plan_filter
        return {
            "dataset_name": self.suite,
            "dataset_split": "test",
            "text_only": chosen.text_only,
            "max_samples": chosen.max_samples,
        }

    def _judging(self) -> Entry:
        judged = [one for one in self.found.values() if one["judge"] is not None]
        return {
            "timestamp": stamp(max((one["judged_at"] for one in judged), default=None)),
            "judge_model": judged[0]["judge"] if judged else None,
            "dataset_name": self.suite,
        }

    @cached_property
    def counts(self) -> Counter[str]:
        """How many questions ended how."""
        return Counter(self._ending(one) for one in self.ids)

    @cached_property
    def result(self) -> Entry:
        """What the summary says of the model, by the rule of their strict mode."""
        counts, error = self.counts, self.run.parameters.get(FAILED_THERE)
        reasons = [
            *(["general_error"] if error else []),
            *(["incomplete_evaluations"] if counts[NOT_ANSWERED] else []),
            *(["incomplete_judgments"] if counts[NOT_JUDGED] else []),
        ]
        return {
            "model_identifier": self.run.model,
            "predictions_file": self.path("predictions"),
            "judged_file": self.path("judged"),
            "metrics": None if reasons else self._metrics(),
            "error": error,
            "excluded_from_metrics": bool(reasons),
            "exclusion_reason": ", ".join(reasons) or None,
        }

    def _ending(self, item_id: str) -> str:
        row = self.found.get(item_id)
        if row is None or not (row["answer"] or "").strip():
            return NOT_ANSWERED
        return NOT_JUDGED if row["score"] is None else "judged"

    def _metrics(self) -> Entry | None:
        judges = {one["judge"] for one in self.found.values()}
        given = {
            "run_id": self.run.run_id,
            "model": self.run.model,
            "suite": self.suite,
            "judge": judges.pop() if len(judges) == 1 else None,
        }
        found = query(self.exporter.db, "summaries/zenmux_numbers", given).fetchone()
        numbers = as_published(*found) if found else None
        return numbers._asdict() if numbers else None


def _refuse_the_same_file(models: Sequence[_ModelExport]) -> None:
    """There, names of files do not tell `/`, `:` and `_` apart."""
    known: dict[str, str] = {}
    for one in models:
        if (other := known.setdefault(one.stem, one.run.model)) != one.run.model:
            raise ZenmuxExportError(
                f"{other} and {one.run.model} have the same file there: export each by itself, as "
                f"{one.run.model}@{one.run.run_id[:8]}."
            )


def _suites(run: Run) -> list[str]:
    return list(dict.fromkeys(key.suite for key in run.plan))


def _question_ids(one: _ModelExport) -> Entry:
    about = {"timestamp": stamp(now()), "batch_timestamp": one.name, **one.dataset}
    return {
        "run_metadata": {**about, "total_questions": len(one.ids)},
        "question_ids": one.ids,
    }


def _available(models: Sequence[_ModelExport]) -> Entry:
    return {
        "discovery_metadata": {
            "timestamp": stamp(now()),
            "batch_timestamp": models[0].name,
            "text_only": models[0].run.plan_filter.text_only,
            "total_available_models": len(models),
        },
        "available_models": {
            one.run.model: {
                "max_completion_tokens": one.described.get("max_output_tokens"),
                "context_length": one.described.get("context_length"),
            }
            for one in models
        },
    }


@contextmanager
def _whole(target: Path) -> Iterator[Path]:
    """A folder that gets its name when everything is in it."""
    if target.exists():
        raise ZenmuxExportError(f"{target} is there already: name another folder.")
    folder = target.with_name(f".exporting-{target.name}-{os.getpid()}")
    try:
        for part in ("predictions", "judged"):
            (folder / part).mkdir(parents=True)
        yield folder
        folder.rename(target)
        sync(target.parent)
    finally:
        if folder.exists():
            remove(folder)


def _write(path: Path, content: object) -> None:
    path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
