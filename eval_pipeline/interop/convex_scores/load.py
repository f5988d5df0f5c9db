"""Importing a scores export, run by run: each record once, however often it is imported."""

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from pydantic import ValidationError

from eval_pipeline.evaluation.runs import scope_of
from eval_pipeline.evaluation.state import PAST_RUNS
from eval_pipeline.interop.convex_scores.convert import SOURCE, Converted, convert, moment
from eval_pipeline.interop.convex_scores.read import (
    Document,
    EvalDocument,
    ModelDocument,
    RunDocument,
    ScoresError,
    StepDocument,
    VersionDocument,
    read_scores,
)
from eval_pipeline.interop.convex_scores.versions import Cohort, VersionImporter, cohorts_of
from eval_pipeline.interop.remote.messages import MOST_RECORDS, RefusedError, RunToOpen, parsed
from eval_pipeline.interop.remote.receive import Receiver
from eval_pipeline.journal import RUNS, Journal
from eval_pipeline.journal.files import as_line, remove
from eval_pipeline.processes import is_running
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import Item, ItemKey
from eval_pipeline.records.model import Model, Sighting
from eval_pipeline.records.run import CLOSED, IMPORTED_FROM, PlanFilter, Run
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import past_items

MOST_TOLD = 20
PREFIX = ".importing-"
D = TypeVar("D", bound=Document)


class Staged:
    """Every document of an export once, on disk: of two with one id the last counts."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        db.execute(
            "create table documents (kind text, id text, parent text, created real, body text, "
            "primary key (kind, id)) without rowid"
        )

    def add(self, document: Document) -> None:
        parent = ""
        match document:
            case EvalDocument(run_id=parent) | StepDocument(eval_id=parent):
                pass
        kind, body = type(document).__name__, document.model_dump_json(by_alias=False)
        row = (kind, document.id, parent, document.created, body)
        self._db.execute("insert or replace into documents values (?, ?, ?, ?, ?)", row)

    def finish(self) -> None:
        """Make the documents quick to read; call it when all are added."""
        self._db.execute("create index parents on documents (kind, parent, created)")

    def read(self, kind: type[D], parent: str = "") -> Iterator[D]:
        """Yield the documents of a kind, or those that belong to a run or an eval, by time."""
        sql = "select body from documents where kind = ? and parent = ? order by created, id"
        for (body,) in self._db.execute(sql, (kind.__name__, parent)):
            yield kind.model_validate_json(body)


@contextmanager
def staging(folder: Path) -> Iterator[Staged]:
    """Stage documents in the folder; they are removed when the block ends."""
    for left in folder.glob(f"{PREFIX}*"):  # by imports that were killed
        if not is_running(int(left.name.removeprefix(PREFIX).partition("-")[0])):
            remove(left)
    with (
        TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-", dir=folder) as place,
        closing(sqlite3.connect(Path(place) / "documents.sqlite", isolation_level=None)) as db,
    ):
        db.execute("pragma journal_mode = off")
        db.execute("pragma synchronous = off")
        db.execute("begin")
        try:
            yield Staged(db)
        except sqlite3.Error as error:
            raise ScoresError(f"{folder}: there is no place for the documents ({error}).") from None


@dataclass
class Imported:
    """The counts of an import, and the first few problems of those that it found."""

    runs: int = 0
    new_runs: int = 0
    predictions: int = 0
    judgements: int = 0
    wrong: int = 0
    troubles: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    versions: dict[str, str] = field(default_factory=dict)
    published: bool = False

    def report(self, problem: str) -> None:
        """Count a problem, and keep it if it is one of the first."""
        self.wrong += 1
        if len(self.troubles) < MOST_TOLD:
            self.troubles.append(problem)


def import_scores(
    path: Path, here: Receiver, settings: Settings, *, publish: bool | None = None
) -> Imported:
    """Import every run of the export that is not here yet, and what is new of those that are.

    By default its versions are published only if there is no run of our own: otherwise the
    leaderboard would suddenly be about something else.
    """
    found = Imported(published=not _has_own_runs(here.journal) if publish is None else publish)
    settings.data.mkdir(parents=True, exist_ok=True)
    with staging(settings.data) as staged:
        for line in read_scores(path):
            if line.wrong:
                found.report(f"{line.place}: {line.wrong}.")
            elif line.is_run_of_questions:
                found.left_out["runs of questions, which are not coding evals"] += 1
            elif line.document is not None:
                staged.add(line.document)
        staged.finish()
        _Import(staged, here, settings, found).run()
    here.warehouse.publish()
    return found


def _has_own_runs(journal: Journal) -> bool:
    return any(
        not run.is_imported
        for model in journal.parts(RUNS)
        for run in journal.read(PAST_RUNS, model)
    )


@dataclass
class _Import:
    staged: Staged
    here: Receiver
    settings: Settings
    found: Imported

    def run(self) -> None:
        """Import all runs, in the order in which they were opened."""
        all_runs = list(self.staged.read(RunDocument))
        runs = [run for run in all_runs if run.planned]
        if empty := len(all_runs) - len(runs):
            self.found.left_out["runs that planned nothing"] += empty
        if not runs:
            raise ScoresError("There are no runs of coding evals in it.")
        # Older runs name their version by its hash.
        versions = {
            name: one for one in self.staged.read(VersionDocument) for name in (one.id, one.version)
        }
        models = {one.id: one for one in self.staged.read(ModelDocument)}
        cohorts = cohorts_of(runs, versions)
        self._read_texts(runs, cohorts)
        wanted = {task for one in cohorts.values() for task in one.tasks}
        importer = VersionImporter(self.here, self.settings, wanted, publish=self.found.published)
        kept: dict[str, tuple[str, Mapping[ItemKey, Item]]] = {}
        for run in runs:
            cohort = cohorts[run.id]
            if cohort.key not in kept:
                version = importer.keep(cohort).benchmark_version
                kept[cohort.key] = version, past_items(self.here.journal, version)
                self.found.versions[cohort.name] = version
            self._import_run(run, models.get(run.model_id or ""), *kept[cohort.key])

    def _read_texts(self, runs: Sequence[RunDocument], cohorts: Mapping[str, Cohort]) -> None:
        """Read the texts of the tasks: the first of each version counts, so that none changes."""
        for run in runs:
            cohort = cohorts[run.id]
            if len(cohort.texts) < len(cohort.tasks):
                for one in self.staged.read(EvalDocument, run.id):
                    if one.text:
                        cohort.texts.setdefault(one.task, one.text)

    def _import_run(
        self,
        document: RunDocument,
        model: ModelDocument | None,
        version: str,
        items: Mapping[ItemKey, Item],
    ) -> None:
        self.found.runs += 1
        try:
            wanted = _run(document, model, version, items)
            run = wanted.run
            opened = self.here.open_run(wanted)
            done = list(self._converted(document, run, items))
            for start in range(0, len(done), MOST_RECORDS):
                predictions, judgements = zip(*done[start : start + MOST_RECORDS], strict=True)
                kept = self.here.take_predictions(run.run_id, run.model, predictions)
                judged = self.here.take_judgements(run.run_id, run.model, judgements)
                self.found.predictions += kept.new
                self.found.judgements += judged.new
            self.found.new_runs += opened.state == "new"
        except (RefusedError, ValidationError) as error:
            self.found.report(f"run {document.id}: {_first_problem(error)}")

    def _converted(
        self, document: RunDocument, run: Run, items: Mapping[ItemKey, Item]
    ) -> Iterator[Converted]:
        planned = {key.item_id: key for key in run.plan}
        status, left_out = document.status, self.found.left_out
        void = (status.reason or "for no reason given") if status.kind == "failed" else ""
        last = {one.task: one for one in self.staged.read(EvalDocument, document.id)}
        ended = {task for task, one in last.items() if one.status.kind in ("passed", "failed")}
        if status.kind in ("pending", "running") and ended >= planned.keys():
            # It may yet be found to have failed as a whole, and must not look complete until then.
            left_out["evals of runs that had not ended"] += len(last)
            return
        for task, one in last.items():
            if task not in planned:
                left_out["evals that their run did not plan"] += 1
            elif task not in ended:
                left_out["evals that were not finished"] += 1
            elif isinstance(item := items[planned[task]], CodingTask):
                try:
                    steps = list(self.staged.read(StepDocument, one.id))
                    yield convert(run, item, one, steps, void=void, redact=self.settings.redact)
                except (RefusedError, ValidationError) as error:
                    self.found.report(f"eval {one.id} of run {run.run_id}: {_first_problem(error)}")


def _run(
    document: RunDocument,
    known: ModelDocument | None,
    version: str,
    items: Mapping[ItemKey, Item],
) -> RunToOpen:
    planned = {*document.planned}
    plan = tuple(key for key in items if key.item_id in planned)
    model = _model(document, known)
    opened = moment(document.created)
    run = Run(
        run_id=document.id,
        model=model.id,
        experiment=document.experiment or "default",
        benchmark_version=version,
        plan=plan,
        plan_filter=PlanFilter(),
        scope=scope_of(plan, items),
        # The same for all: only runs that were asked alike stand together on a leaderboard.
        parameters={IMPORTED_FROM: SOURCE, CLOSED: True},
        simulated=False,
        opened_at=opened,
    )
    seen = Sighting(model=model, selected=False, seen_at=opened)
    return parsed(as_line(RunToOpen(run=run, sighting=seen)), RunToOpen.model_validate)


def _model(run: RunDocument, known: ModelDocument | None) -> Model:
    slug = known.slug if known else run.model
    if not slug:
        raise RefusedError("Nothing tells which model it is of.")
    gateway = run.provider or "unknown"
    name = slug if "/" in slug else f"{gateway}/{slug}"
    vendor, _, rest = name.partition("/")
    return Model(
        id=name,
        gateway=gateway,
        request_name=slug,
        vendor=vendor,
        name=rest,
        display_name=(known or run).display_name or slug,
    )


def _first_problem(error: Exception) -> str:
    if isinstance(error, ValidationError):
        problem = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}."
    return str(error)
