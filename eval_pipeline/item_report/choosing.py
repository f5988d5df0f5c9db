"""Which item of which run is meant."""

import shlex
from collections.abc import Sequence
from typing import NamedTuple

import duckdb

from eval_pipeline.closest import unknown
from eval_pipeline.errors import RunError
from eval_pipeline.records import ItemKey
from eval_pipeline.results.queries import query
from eval_pipeline.results.runs import find_runs


class Chosen(NamedTuple):
    """An item in a run of one model."""

    run_id: str
    model: str
    key: ItemKey


def choose_item(
    db: duckdb.DuckDBPyConnection, run: str, item: str, *, command: str = "show"
) -> Chosen:
    """The only item that is meant: by its id or suite/id, in a run as `find_runs` knows it.

    Where it may be any of several, `evals command` is shown with one of them.
    """
    runs = find_runs(db, run)
    run_id = runs[0].run_id
    given = {"run_id": run_id, "models": [one.model for one in runs]}
    planned = query(db, "summaries/planned_items", given).fetchall()
    found = [
        Chosen(run_id, model, ItemKey(suite, item_id))
        for model, suite, item_id in planned
        if item in (item_id, f"{suite}/{item_id}")
    ]
    if not found:
        keys = [ItemKey(suite, item_id) for _, suite, item_id in planned]
        known = {spelling: _path(key) for key in keys for spelling in (key.item_id, _path(key))}
        raise RunError(unknown("item", item, known, where=f" in run {run_id[:8]}"))
    return _only_one(found, run, item, command)


def _only_one(found: Sequence[Chosen], run: str, item: str, command: str) -> Chosen:
    keys = list(dict.fromkeys(one.key for one in found))
    if len(keys) > 1:
        said = f"'{item}' may be any of: {', '.join(map(_path, keys))}."
        raise RunError(f"{said} For example: {_example(command, run, _path(keys[0]))}")
    if len(found) > 1:
        names = [f"{one.model}@{one.run_id[:8]}" for one in found]
        said = f"Several models were asked '{item}' in that run: {', '.join(names)}."
        raise RunError(f"{said} For example: {_example(command, names[0], item)}")
    return found[0]


def _example(command: str, run: str, item: str) -> str:
    return shlex.join(["evals", command, run, item])


def _path(key: ItemKey) -> str:
    return f"{key.suite}/{key.item_id}"
