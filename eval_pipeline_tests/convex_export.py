"""Small exports as convex-evals' scores backend would write them, in our own words."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

Documents = dict[str, list[dict[str, Any]]]
START = 1_760_000_000_000.0
TASKS = ("000-basics/000-empty", "000-basics/001-list", "001-data/000-index")
STEPS = ("filesystem", "install", "deploy", "tsc", "eslint", "tests")
USAGE = {
    "inputTokens": 1000.0,
    "outputTokens": 200.0,
    "outputTokenDetails": {"reasoningTokens": 50.0},
    "cachedInputTokens": 10.0,
    "raw": {"cost": 0.125, "is_byok": False},
}


def a_passed(**changes: Any) -> dict[str, Any]:
    return {"kind": "passed", "durationMs": 9000.0, "generationDurationMs": 4000.0,
            "usage": USAGE, **changes}  # fmt: skip


def a_failed(reason: str, **changes: Any) -> dict[str, Any]:
    return {**a_passed(), "kind": "failed", "failureReason": reason, **changes}


def a_version(name: str = "v" * 64, evals: float = 3.0, **changes: Any) -> dict[str, Any]:
    about = {"version": name, "effectiveAt": START - 1000, "evalCount": evals}
    return {"_id": f"version-{name[:4]}", "_creationTime": START, **about,
            "curatedModels": [], "provenance": "minted", **changes}  # fmt: skip


def a_model(slug: str = "acme/large") -> dict[str, Any]:
    return {"_id": f"model-{slug}", "_creationTime": START, "slug": slug,
            "formattedName": "Acme Large", "provider": "acme", "apiKind": "chat"}  # fmt: skip


def an_export(
    *statuses: Mapping[str, Any], run: str = "run1", model: str = "acme/large", **changes: Any
) -> Documents:
    """One run whose evals ended like this, each with the steps that go with it."""
    opened = START + 1000 * sum(map(ord, run))
    document = {
        "_id": run, "_creationTime": opened, "modelId": f"model-{model}",
        "provider": "openrouter", "plannedEvals": list(TASKS), "benchmarkVersion": "version-vvvv",
        "status": {"kind": "completed", "durationMs": 60000.0}, **changes,
    }  # fmt: skip
    evals = [
        _eval(run, opened, task, status) for task, status in zip(TASKS, statuses, strict=False)
    ]
    steps = [step for one in evals for step in steps_of(one["_id"], opened, one["status"])]
    return {
        "models": [a_model(model)],
        "benchmarkVersions": [a_version()],
        "runs": [document],
        "evals": evals,
        "steps": steps,
        "authTokens": [{"_id": "t", "_creationTime": START, "name": "ci", "value": "secret"}],
    }


def _eval(run: str, opened: float, task: str, status: Mapping[str, Any]) -> dict[str, Any]:
    category, _, name = task.partition("/")
    return {"_id": f"{run}-{task.replace('/', '-')}", "_creationTime": opened + 1, "runId": run,
            "evalPath": task, "category": category, "name": name, "status": dict(status),
            "task": f"Do {task}.\n"}  # fmt: skip


def steps_of(eval_id: str, opened: float, status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All of them passed, or up to the one that the reason of the eval names."""
    if status["kind"] not in ("passed", "failed") or status.get("failureReason", "")[:1] == "[":
        return []
    failed = next((one for one in STEPS if one in status.get("failureReason", "")), None)
    return [
        {"_id": f"{eval_id}-{name}", "_creationTime": opened + 2 + place, "evalId": eval_id,
         "name": name, "status": a_step(name, status) if name == failed
         else {"kind": "passed", "durationMs": 1500.0}}
        for place, name in enumerate(STEPS)
    ]  # fmt: skip


def a_step(name: str, status: Mapping[str, Any]) -> dict[str, Any]:
    reason = f"{name} failed:\n{status['failureReason']}"
    return {"kind": "failed", "failureReason": reason, "durationMs": 500.0}


def of_questions() -> Documents:
    """A run of multiple choice, which is in the same tables in a form of its own."""
    kind, key = {"kind": "decision", "_creationTime": START}, "000-basics/000-empty/q1"
    bank = {"sources": [{"evalPath": TASKS[0], "questions": [{"id": "q1", "optionIds": ["a"]}]}]}
    run = {
        "_id": "choices",
        "model": "acme/large",
        "runKey": "ci/1",
        "plannedQuestions": [key],
        "status": "completed",
        "benchmarkVersion": "bank",
        "condition": "no_guidelines",
    }
    result = {"_id": "choice", "runId": "choices", "questionKey": key, "repetition": 0.0,
              "outcome": "answered", "correct": True, "durationMs": 900.0}  # fmt: skip
    version = {"_id": "bank", "version": "w" * 64, "effectiveAt": START, "decision": bank}
    return {
        "benchmarkVersions": [{**kind, **version}],
        "runs": [{**kind, **run}],
        "evals": [{**kind, **result}],
        "modelScores": [{**kind, "_id": "s", "model": "acme/large", "plannedQuestions": 1.0}],
    }


def together(*exports: Documents) -> Documents:
    """All of them in one, each document once."""
    found: Documents = {}
    for export in exports:
        for table, documents in export.items():
            known = found.setdefault(table, [])
            known += [one for one in documents if one not in known]
    return found


def write_archive(path: Path, export: Documents, more: Mapping[str, bytes] | None = None) -> Path:
    """As `npx convex export --path` writes it."""
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.writestr("README.md", "A snapshot.")
        for table, documents in export.items():
            archive.writestr(f"{table}/documents.jsonl", lines(documents))
            archive.writestr(f"{table}/generated_schema.jsonl", '"any"\n')
        for name, content in (more or {}).items():
            archive.writestr(name, content)
    return path


def write_folder(path: Path, export: Documents) -> Path:
    """The same, unpacked."""
    for table, documents in export.items():
        (path / table).mkdir(parents=True)
        (path / table / "documents.jsonl").write_bytes(lines(documents))
    return path


def write_lines(path: Path, export: Documents, *, telling: bool) -> Path:
    """One file; each line says of which table it is, or its fields do."""
    said = [
        {"table": table, **one} if telling else one
        for table, documents in export.items()
        for one in documents
    ]
    path.write_bytes(lines(said))
    return path


def lines(documents: Iterable[object]) -> bytes:
    return "".join(f"{json.dumps(one)}\n" for one in documents).encode()
