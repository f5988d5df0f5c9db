"""Takes an export in, run by run: each record once, however often it is imported."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from eval_pipeline.evaluation.runs import scope_of
from eval_pipeline.evaluation.state import PAST_RUNS
from eval_pipeline.interop.convex_scores.convert import SOURCE, Converted, convert, moment
from eval_pipeline.interop.convex_scores.documents import EvalDocument, ModelDocument, RunDocument
from eval_pipeline.interop.convex_scores.read import Line, ScoresError, Staged, read_scores, staging
from eval_pipeline.interop.convex_scores.versions import Cohort, Keeper, cohorts_of
from eval_pipeline.interop.remote.messages import MOST_RECORDS, RefusedError, RunToOpen, parsed
from eval_pipeline.interop.remote.receive import Receiver
from eval_pipeline.journal import RUNS, Journal
from eval_pipeline.journal.files import as_line
from eval_pipeline.records.base import Record
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import BenchmarkVersion, Item, ItemKey
from eval_pipeline.records.model import Model, Sighting
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import CLOSED, IMPORTED_FROM, PlanFilter, Run
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import past_items

MOST_TOLD = 20
FINISHED = ("passed", "failed")
UNFINISHED = ("pending", "running")
R = TypeVar("R", bound=Record)
_OPEN = TypeAdapter(RunToOpen)
_PREDICTION, _JUDGEMENT = TypeAdapter(Prediction), TypeAdapter(Judgement)


@dataclass
class Imported:
    """What came of an import; of what was wrong, the first few are told."""

    runs: int = 0
    new_runs: int = 0
    predictions: int = 0
    judgements: int = 0
    wrong: int = 0
    troubles: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    versions: dict[str, str] = field(default_factory=dict)
    published: bool = False

    def tell(self, trouble: str) -> None:
        """Something could not be taken in."""
        self.wrong += 1
        if len(self.troubles) < MOST_TOLD:
            self.troubles.append(trouble)


def import_scores(
    path: Path, here: Receiver, settings: Settings, *, publish: bool | None = None
) -> Imported:
    """Every run of the export that is not here yet, and what is new of those that are.

    Its versions are published if that is said, and else if there is no run of our own: what the
    leaderboard is about does not change behind the back of whoever has one.
    """
    found = Imported(published=not _has_own_runs(here.journal) if publish is None else publish)
    settings.data.mkdir(parents=True, exist_ok=True)
    with staging(settings.data) as staged:
        for line in read_scores(path):
            _stage(line, staged, found)
        staged.finish()
        _Taking(staged, here, settings, found).take()
    here.warehouse.publish()
    return found


def _has_own_runs(journal: Journal) -> bool:
    return any(
        not run.is_imported
        for model in journal.parts(RUNS)
        for run in journal.read(PAST_RUNS, model)
    )


def _stage(line: Line, staged: Staged, found: Imported) -> None:
    if line.wrong:
        found.tell(f"{line.place}: {line.wrong}.")
    elif line.of_questions and line.table == "runs":
        found.left_out["runs of questions, which are not coding evals"] += 1
    elif line.table is not None and line.document is not None:
        staged.add(line.table, line.document)


@dataclass
class _Taking:
    staged: Staged
    here: Receiver
    settings: Settings
    found: Imported

    def take(self) -> None:
        """All runs, in the order in which they were opened."""
        runs = [run for run in self.staged.runs() if self._is_wanted(run)]
        if not runs:
            raise ScoresError("There are no runs of coding evals in it.")
        cohorts = cohorts_of(runs, self.staged.versions())
        models = self.staged.models()
        self._read_texts(runs, cohorts)
        wanted = {task for one in cohorts.values() for task in one.tasks}
        keeper = Keeper.of(self.here.journal, self.settings, wanted, publish=self.found.published)
        kept: dict[str, tuple[BenchmarkVersion, Mapping[ItemKey, Item]]] = {}
        for run in runs:
            cohort = cohorts[run.id]
            if cohort.key not in kept:
                version = keeper.keep(cohort)
                items = past_items(self.here.journal, version.benchmark_version)
                kept[cohort.key] = version, items
                self.found.versions[cohort.name] = version.benchmark_version
            self._take_run(run, models, *kept[cohort.key])

    def _is_wanted(self, run: RunDocument) -> bool:
        if not run.planned:
            self.found.left_out["runs that planned nothing"] += 1
        return bool(run.planned)

    def _read_texts(self, runs: Sequence[RunDocument], cohorts: Mapping[str, Cohort]) -> None:
        """What the tasks said: of each version as it was told first, which never changes."""
        for run in runs:
            cohort = cohorts[run.id]
            if len(cohort.texts) < len(cohort.tasks):
                for one in self.staged.evals(run.id):
                    if one.task:
                        cohort.texts.setdefault(task_of(one), one.task)

    def _take_run(
        self,
        document: RunDocument,
        models: Mapping[str, ModelDocument],
        version: BenchmarkVersion,
        items: Mapping[ItemKey, Item],
    ) -> None:
        self.found.runs += 1
        try:
            wanted = _run(document, models, version, items)
            opened = self.here.open_run(wanted)
            done = list(self._converted(document, wanted.run, items))
            self._keep(wanted.run, done)
            self.found.new_runs += opened.state == "new"
        except (RefusedError, ValidationError) as error:
            self.found.tell(f"run {document.id}: {_first_words(error)}")

    def _keep(self, run: Run, done: Sequence[Converted]) -> None:
        for start in range(0, len(done), MOST_RECORDS):
            some = done[start : start + MOST_RECORDS]
            predictions = [one.prediction for one in some]
            verdicts = [one.judgement for one in some]
            taken = self.here.take_predictions(run.run_id, run.model, predictions)
            judged = self.here.take_judgements(run.run_id, run.model, verdicts)
            self.found.predictions += taken.new
            self.found.judgements += judged.new

    def _converted(
        self, document: RunDocument, run: Run, items: Mapping[ItemKey, Item]
    ) -> Iterator[Converted]:
        planned = {key.item_id: key for key in run.plan}
        status = document.status
        void = (status.reason or "for no reason given") if status.kind == "failed" else ""
        last = {task_of(one): one for one in self.staged.evals(document.id)}
        ended = {task for task, one in last.items() if one.status.kind in FINISHED}
        if status.kind in UNFINISHED and ended >= planned.keys():
            # It may yet be found to have failed as a whole, and must not look complete until then.
            self.found.left_out["evals of runs that had not ended"] += len(last)
            return
        for task, one in last.items():
            if task not in planned:
                self.found.left_out["evals that their run did not plan"] += 1
            elif task not in ended:
                self.found.left_out["evals that were not finished"] += 1
            elif isinstance(item := items[planned[task]], CodingTask):
                converted = self._checked(run, item, one, void)
                if converted is not None:
                    yield converted

    def _checked(
        self, run: Run, item: CodingTask, one: EvalDocument, void: str
    ) -> Converted | None:
        """Only what can be kept: a line that DuckDB can not read would spoil it for everybody."""
        try:
            taken = self.staged.steps(one.id)
            made = convert(run, item, one, taken, void=void, redact=self.settings.redact)
            return Converted(
                parsed(as_line(made.prediction), _PREDICTION),
                parsed(as_line(made.judgement), _JUDGEMENT),
            )
        except (RefusedError, ValidationError) as error:
            self.found.tell(f"eval {one.id} of run {run.run_id}: {_first_words(error)}")
            return None


def task_of(one: EvalDocument) -> str:
    """Category and name, as plans have it."""
    return one.path.removeprefix("./").removeprefix("evals/")


def _run(
    document: RunDocument,
    models: Mapping[str, ModelDocument],
    version: BenchmarkVersion,
    items: Mapping[ItemKey, Item],
) -> RunToOpen:
    planned = {*document.planned}
    plan = tuple(key for key in items if key.item_id in planned)
    model = _model(document, models.get(document.model_id or ""))
    opened = moment(document.created)
    run = Run(
        run_id=document.id,
        model=model.id,
        experiment=document.experiment or "default",
        benchmark_version=version.benchmark_version,
        plan=plan,
        plan_filter=PlanFilter(),
        scope=scope_of(plan, items),
        # The same for all: only runs that were asked alike stand together on a leaderboard.
        parameters={IMPORTED_FROM: SOURCE, CLOSED: True},
        simulated=False,
        opened_at=opened,
    )
    seen = Sighting(model=model, selected=False, seen_at=opened)
    return parsed(as_line(RunToOpen(run=run, sighting=seen)), _OPEN)


def _model(run: RunDocument, known: ModelDocument | None) -> Model:
    slug = known.slug if known else run.model
    if not slug:
        raise RefusedError("Nothing tells which model it is of.")
    name = slug if "/" in slug else f"{run.provider or 'unknown'}/{slug}"
    vendor, _, rest = name.partition("/")
    shown = (known.shown if known else run.shown) or slug
    gateway = run.provider or "unknown"
    return Model(
        id=name, gateway=gateway, request_name=slug, vendor=vendor, name=rest, display_name=shown
    )


def _first_words(error: Exception) -> str:
    if isinstance(error, ValidationError):
        problem = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}."
    return str(error)
