"""What a log says of the run as a whole: what was evaluated, how, and what came of it."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import NamedTuple

from eval_pipeline.hashing import fingerprint
from eval_pipeline.interop.inspect.samples import Document, Names, error, moment, usage
from eval_pipeline.results.runs import Row

LOG_VERSION = 2
"""Of Inspect's format."""
GENERATING = ("temperature", "max_tokens")
SHORT = 8


class Facts(NamedTuple):
    """What the tables say of a run: itself, what it used, and how each judge sees it."""

    run: Row
    used: Row
    gradings: Sequence[Row]
    suites: Sequence[str]
    sample_ids: Sequence[str]


def names_of(gradings: Sequence[Row]) -> Names:
    """The judge's name, and where it judged under several versions that too."""
    judges = [one["judge"] for one in gradings]
    return {
        (one["judge"], one["judge_version"]): (
            one["judge"]
            if judges.count(one["judge"]) == 1
            else f"{one['judge']}@{one['judge_version'][:SHORT]}"
        )
        for one in gradings
        if one["judge"] is not None
    }


def header_of(facts: Facts) -> Document:
    """All of the log but its samples."""
    status = _status(facts.gradings[0])
    found = {
        "version": LOG_VERSION,
        "status": status,
        "eval": _spec(facts),
        "plan": _plan(facts),
        "results": _results(facts),
        "stats": _stats(facts),
    }
    if status == "error":
        found["error"] = error(facts.gradings[0]["incomplete_because"] or "Nothing was judged.")
    return found


def _status(grading: Row) -> str:
    """Inspect shows numbers of what succeeded only, and beside them how many have none."""
    if not grading["judged"]:
        return "error"
    asked = grading["answered"] + grading["failed"]
    return "success" if asked == grading["planned"] else "cancelled"


def start_of(header: Document) -> Document:
    """How a log in an archive begins."""
    return {name: header[name] for name in ("version", "eval", "plan")}


def _spec(facts: Facts) -> Document:
    run, names = facts.run, names_of(facts.gradings)
    task = "+".join(facts.suites)
    metrics = [{"name": "inspect_ai/accuracy"}, {"name": "inspect_ai/stderr"}]
    return {
        "eval_id": fingerprint(run["run_id"], run["model"]),
        "run_id": run["run_id"],
        "created": moment(run["opened_at"]),
        "task": task,
        "task_id": fingerprint(run["benchmark_version"], run["experiment"], run["model"]),
        "task_version": run["benchmark_version"],
        "task_args": {"experiment": run["experiment"], "scope": run["scope"]},
        "dataset": {
            "name": task,
            "samples": len(facts.sample_ids),
            "sample_ids": facts.sample_ids,
            "shuffled": False,
        },
        "model": run["model"],
        "model_generate_config": _generating(run),
        "config": {"epochs": run["samples"], "epochs_reducer": ["mean"]},
        "packages": {"eval_pipeline": version("eval_pipeline")},
        "metadata": {
            **{name: run[name] for name in ("experiment", "scope", "simulated")},
            "parameters": run["parameters"],
        },
        "scorers": [
            {"name": name, "options": {"judge": judge, "judge_version": of}, "metrics": metrics}
            for (judge, of), name in names.items()
        ],
    }


def _generating(run: Row) -> Document:
    """How the model was asked, as far as Inspect has a word for it."""
    said = run["parameters"]
    return {name: said[name] for name in GENERATING if said.get(name) is not None}


def _plan(facts: Facts) -> Document:
    solver = {"solver": "eval_pipeline", "params": {"experiment": facts.run["experiment"]}}
    return {"name": "plan", "steps": [solver], "config": _generating(facts.run)}


def _results(facts: Facts) -> Document:
    names, first = names_of(facts.gradings), facts.gradings[0]
    return {
        "total_samples": first["planned"],
        "completed_samples": max(one["judged"] for one in facts.gradings),
        "scores": [
            _score(one, names[one["judge"], one["judge_version"]])
            for one in facts.gradings
            if one["judge"] is not None
        ],
    }


def _score(grading: Row, name: str) -> Document:
    """The numbers of our own tables: nothing is computed anew."""
    numbers = {"accuracy": grading["accuracy"], "stderr": grading["standard_error"]}
    kept = ("judge_version", "accuracy_low", "accuracy_high", "coverage", "incomplete_because")
    return {
        "name": name,
        "scorer": name,
        "reducer": "mean",
        "scored_samples": grading["judged"],
        "unscored_samples": grading["planned"] - grading["judged"],
        "params": {},
        "metrics": {
            metric: {"name": metric, "value": value, "params": {}}
            for metric, value in numbers.items()
            if value is not None
        },
        "metadata": {one: grading[one] for one in kept if grading[one] is not None},
    }


def _stats(facts: Facts) -> Document:
    used = facts.used
    times = {"started_at": used["began_at"], "completed_at": used["ended_at"]}
    return {
        **{name: moment(at) if at is not None else "" for name, at in times.items()},
        "model_usage": {facts.run["model"]: usage(used)} if used["began_at"] is not None else {},
    }
