"""Projects in temporary folders: settings that lead to the load server, questions, a catalog."""

import json
import os
import shutil
import sys
from pathlib import Path

from bench.measuring import finished

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
SUITE = "bench"
PREDICTIONS = ("dagster", "asset", "materialize", "--select", "predictions", "--partition")
_INPUTS = ("dagster", "asset", "materialize", "--select", "dataset,model_catalog")
# What a developer has set must not decide what is measured.
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "USER")


def environment(**variables: str) -> dict[str, str]:
    """The environment of everything that is started here: no settings, no keys."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    ours = {"PATH": f"{BIN}:{kept.get('PATH', '')}", "PYTHONPATH": str(ROOT)}
    return {**kept, **ours, **variables}


def question_id(number: int) -> str:
    """The id of the n-th question."""
    return f"q{number:06}"


def question_text(number: int) -> str:
    """What is asked, with the mark by which the load server counts it."""
    return (
        f"[[{question_id(number)}]] A merchant has {number} barrels and sells a third of them on "
        "each of three days, always rounding down. On the fourth day a storm ruins one barrel in "
        "seven of those that are left, again rounding down. How many barrels are still whole, and "
        "how many would there be if the storm had come before the first day?"
    )


def write_questions(path: Path, count: int) -> None:
    """So many questions, in the shape of Humanity's Last Exam."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            row = {
                "id": question_id(number),
                "question": question_text(number),
                "image": "",
                "answer": "42",
                "answer_type": "exactMatch",
                "category": ("Math", "Physics", "Other")[number % 3],
            }
            file.write(json.dumps(row) + "\n")


def a_project(folder: Path, *, questions: int, base_url: str) -> Path:
    """A project with a data set and a catalog; no model has been asked anything yet."""
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "dagster.yaml", folder / "dagster.yaml")
    write_questions(folder / "questions.jsonl", questions)
    write_settings(folder, base_url=base_url, at_once=1)
    run(folder, *_INPUTS)
    return folder


def a_copy(project: Path, folder: Path) -> Path:
    """The project as it is, to be used up by one measurement."""
    shutil.copytree(project, folder)
    return folder


def write_settings(
    folder: Path,
    *,
    base_url: str,
    at_once: int,
) -> None:
    """The settings file: the load server as the only gateway, and nothing that costs."""
    lines = [
        f'suites = [{{ name = "{SUITE}", path = "questions.jsonl" }}]',
        f'gateways = [{{ name = "bench", kind = "openai", base_url = "{base_url}" }}]',
        'selection = { exclude_models = ["bench/judge"] }',
        'judge = { model = "bench/judge" }',
        "automation = { preflight = false }",
        f"concurrency = {{ num_workers = {at_once}, max_concurrent_models = 20 }}",
        "requests = { timeout_s = 120, attempts = 3, first_wait_s = 0.5 }",
    ]
    (folder / "eval_pipeline.toml").write_text("\n".join(lines) + "\n", "utf-8")


def run(folder: Path, *command: str) -> None:
    """Runs a command of the project, which must not fail."""
    finished(command, folder, environment())
