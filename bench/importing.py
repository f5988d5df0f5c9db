"""How long a large results folder of zenmux-benchmark takes to be imported, and how much memory."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

from bench.measuring import measured
from bench.options import Options
from bench.project import environment, question_id
from bench.tables import Cell, Table

MODELS, QUESTIONS = 60, 2_158
STAMP = "20250922_122904"
COLUMNS = ("", "seconds", "CPU s", "peak MB", "JSON MB", "journal MB", "DuckDB file MB")
_MB = 1024 * 1024
_WORDS = "Let the sum of all parts be \u2211 of what is given; then it follows, step by step, that "


def section(options: Options) -> list[Table]:
    """`evals import zenmux` of a folder that is new, and of the same one once more."""
    models, questions = options.scaled(MODELS), options.scaled(QUESTIONS)
    with options.project_copy(questions, 1) as project:
        options.say(f"fabricating the results of {models} models, {questions:,} questions each")
        results = project / "results"
        write_results(results / STAMP, models, questions)
        command = ["evals", "import", "zenmux", str(results)]
        rows = []
        for name in ("new", "the same once more"):
            options.say(f"Importing: {name}")
            taken = measured(command, project, environment())
            sizes = (_size(one) for one in (results, project / "data" / "journal"))
            database = (project / "data" / "evals.duckdb").stat().st_size / _MB
            rows.append((name, taken.wall_s, taken.cpu_s, taken.peak_mb, *sizes, database))
    title = f"evals import zenmux, {models} models x {questions:,} questions"
    return [Table(title, COLUMNS, tuple[tuple[Cell, ...], ...](rows))]


def write_results(folder: Path, models: int, questions: int) -> None:
    """A folder with so many models, in which one answer in two hundred did not come."""
    for part in ("predictions", "judged"):
        (folder / part).mkdir(parents=True)
    ids = [question_id(number) for number in range(questions)]
    _write(folder / f"question_ids_{STAMP}.json", {"question_ids": ids})
    for number in range(models):
        model = f"vendor{number % 12}/model-{number}:provider"
        name = f"hle_{model.replace('/', '_').replace(':', '_')}_{STAMP}.json"
        metadata = {"timestamp": "2025-09-28T13:14:56.988780", "model_identifier": model}
        answers = dict(_entries(model, ids, number))
        judged = {one: _judged(entry, one) for one, entry in answers.items()}
        said = {"evaluation_metadata": metadata, "predictions": answers}
        _write(folder / "predictions" / name, said)
        about = {"judge_model": "openai/gpt-5:openai", "evaluation_metadata": metadata}
        said = {"judging_metadata": about, "judged_predictions": judged}
        _write(folder / "judged" / f"judged_{name}", said)


def _entries(model: str, ids: list[str], seed: int) -> Iterator[tuple[str, dict[str, object]]]:
    chance = random.Random(seed)
    for one in ids:
        failed = chance.random() < 0.005  # noqa: PLR2004
        said = _WORDS * chance.randrange(2, 30) + chance.randbytes(200).hex()
        words = "" if failed else f"{said}\nAnswer: 42\nConfidence: 80%"
        yield (
            one,
            {
                "model": model,
                "response": words,
                "usage": {} if failed else {"completion_tokens": 900, "prompt_tokens": 120},
                "performance": {"first_token_latency_ms": 812.5, "generation_time_ms": 30250.25},
                "generation_id": None if failed else f"{chance.getrandbits(64):016x}",
                **({"error": "Request timed out."} if failed else {}),
            },
        )


def _judged(entry: dict[str, object], item_id: str) -> dict[str, object]:
    if not entry["response"]:
        return entry
    verdict = {
        "correct_answer": "42",
        "model_answer": "42",
        "reasoning": _WORDS * 3,
        "correct": "yes" if item_id[-1] in "02468" else "no",
        "confidence": 80,
    }
    return {**entry, "judge_response": verdict, "judge_generation_id": f"judge-{item_id}"}


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=4), "utf-8")


def _size(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / _MB
