"""What goes into the log of a run, from the tables, a few items at a time."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb

from eval_pipeline.benchmark import past_items
from eval_pipeline.errors import RunError
from eval_pipeline.inspect_log.header import Facts
from eval_pipeline.inspect_log.samples import Answered, named
from eval_pipeline.item_report.prompt import Prompt, rebuilding
from eval_pipeline.journal import Journal
from eval_pipeline.records import Item, ItemKey
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.runs import FoundRun, Row
from eval_pipeline.settings import Settings

MEMORY = "128MB"
AT_ONCE = 100
"""So many items are in memory with all that is known of them."""


@dataclass(frozen=True)
class RunToLog:
    """A run of one model with all that its log is made of."""

    db: duckdb.DuckDBPyConnection
    facts: Facts
    keys: Sequence[ItemKey]
    items: Mapping[ItemKey, Item]
    prompt: Callable[[Item], Prompt]

    @classmethod
    def of(
        cls,
        db: duckdb.DuckDBPyConnection,
        settings: Settings,
        journal: Journal,
        found: FoundRun,
    ) -> "RunToLog":
        """What is the same for all of its items."""
        # What was read is not read again, so that to keep it would be in vain.
        db.execute(f"set memory_limit = '{MEMORY}'")
        about = {"run_id": found.run_id, "model": found.model}
        (run,) = rows(query(db, "summaries/run_described", about))
        run |= {"parameters": json.loads(run["parameters"])}
        (used,) = rows(query(db, "inspect/used", about))
        gradings = rows(query(db, "inspect/gradings", about))
        if not gradings:
            raise RunError(f"Run {found.run_id[:8]} of {found.model} has nothing to write.")
        items = past_items(journal, run["benchmark_version"])
        planned = {ItemKey(*one) for one in query(db, "inspect/planned", about).fetchall()}
        keys = [key for key in items if key in planned]
        suites = list(dict.fromkeys(key.suite for key in keys))
        facts = Facts(run, used, gradings, suites, _names(keys, suites))
        return cls(db, facts, keys, items, rebuilding(settings, journal, run))

    def answered(self) -> Iterator[Answered]:
        """Every planned reply, item by item in the order of the data set."""
        for start in range(0, len(self.keys), AT_ONCE):
            yield from self._some(range(start, min(start + AT_ONCE, len(self.keys))))

    def _some(self, places: range) -> Iterator[Answered]:
        keys = [self.keys[place] for place in places]
        replies = {
            (row["suite"], row["item_id"], row["sample"]): row
            for row in self._asked("inspect/replies", keys)
        }
        verdicts: defaultdict[str, list[Row]] = defaultdict(list)
        for row in self._asked("inspect/verdicts", keys):
            verdicts[row["prediction_id"]].append(row)
        for place, key in zip(places, keys, strict=True):
            item = self.items[key]
            name, prompt = self.facts.sample_ids[place], self.prompt(item)
            for sample in range(self.facts.run["samples"]):
                found = replies.get((*key, sample))
                said = verdicts[found["prediction_id"]] if found else []
                yield Answered(name, item, prompt, sample, found, said)

    def _asked(self, name: str, keys: Sequence[ItemKey]) -> list[Row]:
        run = self.facts.run
        given = {"suites": [key.suite for key in keys], "items": [key.item_id for key in keys]}
        found = query(self.db, name, {"run_id": run["run_id"], "model": run["model"], **given})
        return rows(found)


def _names(keys: Sequence[ItemKey], suites: Sequence[str]) -> list[str]:
    """What samples are called: the items' ids, which are unique within a suite only."""
    if len(suites) == 1:
        return [named(key.item_id) for key in keys]
    return [named(f"{key.suite}/{key.item_id}") for key in keys]
