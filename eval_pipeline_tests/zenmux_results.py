"""Results in the formats of zenmux-benchmark, written for the tests: nothing of it is anybody's."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval_pipeline.interop.zenmux.load import Importer, Taken
from eval_pipeline.interop.zenmux.read import results_folders
from eval_pipeline.journal import RUNS, Journal
from eval_pipeline.records.run import Run
from eval_pipeline.results.queries import rows
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import settings_in

MODEL = "openai/gpt-5:azure"
IDS = ("q1", "q2", "q3")
STAMP = "20250922_122904"
JUDGE = "openai/gpt-5:openai"
Entries = Mapping[str, Mapping[str, Any]]


def an_entry(model: str, response: str = "Answer: 42", **changes: Any) -> dict[str, Any]:
    """An answer as a predictions file has it."""
    return {
        "model": model,
        "response": response,
        "usage": {
            "completion_tokens": 200,
            "prompt_tokens": 100,
            "total_tokens": 300,
            "completion_tokens_details": {"reasoning_tokens": 150},
            "prompt_tokens_details": {"cached_tokens": 10},
        },
        "performance": {
            "first_token_latency_ms": 1500.0,
            "generation_time_ms": 2500.0,
            "throughput_tokens_per_second": 80.0,
        },
        "generation_id": "gen-1",
        **changes,
    }


def a_failure(model: str, error: str = "Request timed out.") -> dict[str, Any]:
    """What stands there for an answer that did not come."""
    nothing = dict.fromkeys(
        ("first_token_latency_ms", "generation_time_ms", "throughput_tokens_per_second"), 0.0
    )
    gone = {"usage": {}, "performance": nothing, "generation_id": None, "error": error}
    return an_entry(model, "", **gone)


def judged(entry: Mapping[str, Any], *, correct: bool, confidence: int = 80) -> dict[str, Any]:
    """The same entry with a verdict, as a judged file has it."""
    return {
        **entry,
        "judge_response": {
            "correct_answer": "42",
            "model_answer": "42" if correct else "41",
            "reasoning": "The two are compared.",
            "correct": "yes" if correct else "no",
            "confidence": confidence,
        },
        "judge_performance": {
            "first_token_latency_ms": 700.0,
            "generation_time_ms": 0.0,
            "throughput_tokens_per_second": 50.0,
        },
        "judge_generation_id": "judge-gen-1",
    }


def not_judged(entry: Mapping[str, Any], error: str = "Error code: 503") -> dict[str, Any]:
    """The same entry with a judge that failed."""
    said = {"correct_answer": "42", "model_answer": "", "reasoning": "", "correct": "no"}
    return {**entry, "judge_response": {**said, "confidence": 0, "error": error}}


def metadata(model: str) -> dict[str, Any]:
    """How a model was asked."""
    provider = model.rpartition(":")[2]
    return {
        "timestamp": "2025-09-28T13:14:56.988780",
        "model_identifier": model,
        "endpoint": {
            "provider_slug": provider,
            "provider": provider.title(),
            "context_length": 128000,
            "max_completion_tokens": 32000,
            "supports_streaming": True,
            "suitable_api": "chat.completions",
        },
        "dataset_config": {
            "dataset_name": "cais/hle",
            "dataset_split": "test",
            "text_only": True,
            "max_samples": None,
        },
        "evaluation_config": {
            "max_completion_tokens": None,
            "temperature": 0.0,
            "num_workers": 100,
            "timeout": 1200.0,
            "max_retries": 2,
        },
    }


def usual(model: str = MODEL) -> tuple[dict[str, Any], dict[str, Any]]:
    """A right answer, a wrong one, and one that did not come."""
    answers = {"q1": an_entry(model), "q2": an_entry(model, "Answer: 41", generation_id="gen-2")}
    answers["q3"] = a_failure(model, "Error code: 429 - {'error': 'slow down'}")
    verdicts = {
        "q1": judged(answers["q1"], correct=True, confidence=90),
        "q2": judged(answers["q2"], correct=False, confidence=30),
        "q3": answers["q3"],
    }
    return answers, verdicts


class Results:
    """A folder of results that grows file by file."""

    def __init__(self, root: Path, ids: Sequence[str], stamp: str = STAMP) -> None:
        self.root, self.stamp, self.path = root, stamp, root / stamp
        self.models: dict[str, Any] = {}
        for part in ("predictions", "judged"):
            (self.path / part).mkdir(parents=True)
        about = {"batch_timestamp": stamp, "text_only": True, "max_samples": None}
        self._write(f"question_ids_{stamp}", {"run_metadata": about, "question_ids": list(ids)})

    def add(
        self, model: str, answers: Entries, verdicts: Entries | None = None, *, old: bool = False
    ) -> None:
        """A model's files; in the `old` form they have no metadata."""
        safe = f"{model.replace('/', '_').replace(':', '_')}_{self.stamp}"
        said = {"evaluation_metadata": metadata(model), "predictions": answers}
        self._write(f"predictions/hle_{safe}", answers if old else said)
        if verdicts is not None:
            about = {
                "timestamp": "2025-09-28T15:00:00.000000",
                "judge_model": JUDGE,
                "evaluation_metadata": metadata(model),
            }
            new = {"judging_metadata": about, "judged_predictions": verdicts}
            self._write(f"judged/judged_hle_{safe}", verdicts if old else new)
        self.models[model] = {"max_completion_tokens": 32000, "context_length": 128000}
        self._write(f"available_models_{self.stamp}", {"available_models": self.models})

    def summary(self, *results: Mapping[str, Any]) -> None:
        """What that project says itself of its models."""
        self._write(f"metrics_summary_{self.stamp}", {"model_results": results})

    def _write(self, name: str, content: object) -> None:
        (self.path / f"{name}.json").write_text(json.dumps(content, indent=4), "utf-8")


class Project:
    """A project with the questions q1, q2 and q3, and a folder of results for it."""

    def __init__(self, folder: Path, settings: Settings | None = None, **changes: Any) -> None:
        self.settings = settings or settings_in(folder / "project", **changes)
        self.journal = Journal(self.settings.journal)
        self.warehouse = Warehouse(self.settings.database, self.journal)

    def take(self, folder: Path) -> tuple[list[Taken], list[str]]:
        """What was taken in, and what was left out."""
        importer = Importer(self.journal, self.settings)
        taken: list[Taken] = []
        folders = results_folders(folder)
        for one in folders:
            taken += importer.take(one)
        return taken, [f"{file}: {why}" for one in folders for file, why in one.problems]

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """What DuckDB says by then."""
        self.warehouse.publish()
        with self.warehouse.reading() as db:
            return rows(db.sql(sql))

    def run(self, model: str = MODEL) -> Run:
        """The only run of the model."""
        (run,) = self.journal.read(RUNS, model)
        return run
