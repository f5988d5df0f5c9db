"""Importing results folders as runs: each record once, however often a folder is imported."""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from secrets import token_hex
from typing import NamedTuple

from eval_pipeline.errors import MendableError
from eval_pipeline.evaluation.deletion import is_at_work
from eval_pipeline.evaluation.runs import scope_of
from eval_pipeline.evaluation.state import (
    JUDGEMENT_BRIEFS,
    PREDICTION_BRIEFS,
    JudgeKey,
    PredictionBrief,
    read_run,
)
from eval_pipeline.interop.remote.receive import keep_sighting
from eval_pipeline.interop.remote.versions import version_of
from eval_pipeline.interop.zenmux import convert, read
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, VERSIONS, BusyError, Journal
from eval_pipeline.records.base import whole_characters
from eval_pipeline.records.item import BenchmarkVersion, ExamQuestion, ItemKey
from eval_pipeline.records.model import Model, Sighting
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import FAILED_THERE, IMPORTED_FROM, Run, Scope
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import Benchmark, keep, load_benchmark, past_items

OWN = "zenmux-hle"
"""The suite of questions of which nothing is known here but what the results say."""
GATEWAY = "zenmux"


class KnownOfRun:
    """The predictions and verdicts that a run has."""

    def __init__(self, journal: Journal, run: Run) -> None:
        self.ids: set[str] = set()
        self._finals: dict[ItemKey, PredictionBrief] = {}
        self._has_score: dict[tuple[str, JudgeKey], bool] = {}
        for one in journal.read(PREDICTION_BRIEFS, run.model, run.run_id):
            self.ids.add(one.prediction_id)
            before = self._finals.setdefault(one.key, one)
            self._finals[one.key] = max(one, before, key=lambda brief: brief.finished_at)
        for verdict in journal.read(JUDGEMENT_BRIEFS, run.model, run.run_id):
            key = verdict.prediction_id, verdict.by
            self._has_score[key] = self._has_score.get(key, False) or verdict.score is not None

    def lacks(self, prediction: Prediction) -> Prediction | None:
        """Return the prediction as it is to be kept; None if the reply has a result already."""
        final = self._finals.get(prediction.key)
        if prediction.prediction_id in self.ids or (final and final.outcome.is_result):
            return None
        if final is None or final.finished_at < prediction.finished_at:
            return prediction
        # Repaired there, in a file that still has the time when it was first written.
        later = final.finished_at + timedelta(microseconds=1)
        return prediction.model_copy(update={"finished_at": later})

    def lacks_verdict(self, one: Judgement) -> bool:
        """Return whether no verdict here says as much yet."""
        key = one.prediction_id, JudgeKey(one.judge, one.judge_version)
        has_score = self._has_score.get(key)
        return has_score is None or (one.score is not None and not has_score)


class Taken(NamedTuple):
    """What of a run was not here before, and how the run is."""

    run_id: str
    model: str
    suite: str
    is_new: bool
    planned: int
    predictions: int
    judgements: int
    error: str | None

    @property
    def is_changed(self) -> bool:
        return bool(self.is_new or self.predictions or self.judgements)


class BenchmarkMatch(NamedTuple):
    """A suite, in a version of the benchmark, that has all the questions of a folder."""

    benchmark: Benchmark
    suite: str


class Importer:
    """Imports folders into a journal; `warning` says why the settings' suites cannot be loaded."""

    def __init__(self, journal: Journal, settings: Settings) -> None:
        self.journal = journal
        self.settings = settings
        self.warning: str | None = None
        self._loaded: Benchmark | None = None
        try:
            self._loaded = load_benchmark(settings)
        except MendableError as error:
            self.warning = f"The suites of the settings cannot be loaded: {error}"

    def take(self, folder: read.ResultsFolder) -> Iterator[Taken]:
        """Yield every model's run once it is on disk; problems are noted in the folder."""
        if problem := _problem_of(folder):
            folder.note("", problem)
            return
        folder_import = _FolderImport(self, folder)
        for unit in read.units(folder):
            try:
                yield folder_import.take(unit)
            except BusyError as busy:
                folder.note(unit.model, str(busy))

    def match(self, folder: read.ResultsFolder) -> BenchmarkMatch:
        """Return the settings' suite with these questions, an earlier version's, or their own."""
        wanted = frozenset(folder.question_ids)
        if self._loaded and (match := _match(self._loaded, wanted)):
            keep(self._loaded, self.journal)
            return match
        versions: dict[str, BenchmarkVersion] = {}
        for one in sorted(self.journal.read(VERSIONS), key=lambda one: one.loaded_at, reverse=True):
            versions.setdefault(one.benchmark_version, one)
        past = (Benchmark(one, past_items(self.journal, name)) for name, one in versions.items())
        found = [match for one in past if (match := _match(one, wanted))]
        if found:  # those with the text of their questions before others
            return min(found, key=lambda one: one.suite == OWN)
        if self._loaded and not versions:
            keep(self._loaded, self.journal)
        return self._make_version(folder)

    def _make_version(self, folder: read.ResultsFolder) -> BenchmarkMatch:
        """Journal a version of these questions, dated before others so that it is never current."""
        references = _references_in(folder)
        questions = [
            ExamQuestion(
                suite=OWN,
                id=one,
                question="",
                image=None,
                answer=references.get(one, ""),
                answer_type="exactMatch",
                category="unknown",
                rationale="",
                raw_subject="",
            )
            for one in folder.question_ids
        ]
        version = version_of(questions, convert.SOURCE, convert.PROMPT_HASH, folder.began_at)
        benchmark = Benchmark(version, {ItemKey(OWN, one.id): one for one in questions})
        keep(benchmark, self.journal)
        return BenchmarkMatch(benchmark, OWN)


def _match(benchmark: Benchmark, wanted: Set[str]) -> BenchmarkMatch | None:
    """Return the first exam suite of the benchmark that has all these questions."""
    for one in benchmark.version.suites:
        keys = benchmark.items if one.kind == "exam" and one.items >= len(wanted) else ()
        if wanted <= {key.item_id for key in keys if key.suite == one.suite}:
            return BenchmarkMatch(benchmark, one.suite)
    return None


def _references_in(folder: read.ResultsFolder) -> dict[str, str]:
    """Return the reference answers that judges were given."""
    found: dict[str, str] = {}
    for _, judged in folder.model_files(read.JUDGED_FILES):
        for item_id, entry in judged.entries.items():
            if reference := read.text_in(read.object_in(entry, "judge_response"), "correct_answer"):
                found.setdefault(item_id, reference)
        if found.keys() >= {*folder.question_ids}:
            break
    return found


@dataclass(frozen=True)
class _FolderImport:
    importer: Importer
    folder: read.ResultsFolder

    @cached_property
    def match(self) -> BenchmarkMatch:
        return self.importer.match(self.folder)

    @cached_property
    def plan(self) -> tuple[ItemKey, ...]:
        """The questions in the order of the data set."""
        ids = frozenset(self.folder.question_ids)
        keys = (key for key in self.match.benchmark.items if key.suite == self.match.suite)
        return tuple(key for key in keys if key.item_id in ids)

    @cached_property
    def scope(self) -> Scope:
        return scope_of(self.plan, self.match.benchmark.items)

    def take(self, unit: read.Unit) -> Taken:
        """Write what is not here yet; after an interruption, it is done again."""
        journal, run_id = self.importer.journal, self.folder.run_id
        with self._claim(unit.model):
            is_new = not journal.exists(RUNS, unit.model, run_id)
            run = self._open(unit) if is_new else read_run(journal, unit.model, run_id)
            here = KnownOfRun(journal, run)
            answers = self._answers(unit, run)
            new = [one for answer in answers.values() if (one := here.lacks(answer))]
            known = here.ids.union(one.prediction_id for one in new)
            given = [
                one
                for one in self._verdicts(unit, answers, run)
                if one.prediction_id in known and here.lacks_verdict(one)
            ]
            name = f"imported-{token_hex(6)}"
            if new:
                journal.write_whole(PREDICTIONS, run.model, run_id, name, records=new)
            if given:
                journal.write_whole(JUDGED, run.model, run_id, name, records=given)
        return Taken(
            run_id,
            unit.model,
            run.plan[0].suite,
            is_new,
            run.planned,
            len(new),
            len(given),
            self._error(unit.model),
        )

    def _error(self, model: str) -> str | None:
        """Return the error that ended the model's run there."""
        error = read.text_in(self.folder.results.get(model, {}), "error")
        if error is None:
            return None
        return self.importer.settings.redact(whole_characters(error[: convert.LONGEST_ERROR]))

    @contextmanager
    def _claim(self, model: str) -> Iterator[None]:
        journal = self.importer.journal
        with journal.claim_soon(PREDICTIONS, model), journal.claim_soon(JUDGED, model):
            if is_at_work(journal, model, self.folder.run_id):
                raise BusyError(f"A launch is at work on {model}: import again when it is done.")
            yield

    def _open(self, unit: read.Unit) -> Run:
        said = read.object_in(unit.metadata, "evaluation_config")
        has_entries = any(file.entries for file in unit.files)
        parameters = {
            IMPORTED_FROM: convert.SOURCE,
            "temperature": read.number_in(said, "temperature", 2),
            "max_tokens": read.count_in(said, "max_completion_tokens") or None,
            FAILED_THERE: None if has_entries else self._error(unit.model),
        }
        version = self.match.benchmark.version
        suites = (self.match.suite,) if len(version.suites) > 1 else ()
        run = Run(
            run_id=self.folder.run_id,
            model=unit.model,
            experiment="default",
            benchmark_version=version.benchmark_version,
            plan=self.plan,
            plan_filter=self.folder.plan_filter.model_copy(update={"suites": suites}),
            scope=self.scope,
            parameters={name: one for name, one in parameters.items() if one is not None},
            simulated=False,
            opened_at=self.folder.began_at,
        )
        keep_sighting(self.importer.journal, self._sighting(unit))
        self.importer.journal.write_whole(RUNS, run.model, run.run_id, records=[run])
        return run

    def _sighting(self, unit: read.Unit) -> Sighting:
        listed = self.folder.listed_models.get(unit.model, {})
        said = {**read.object_in(unit.metadata, "endpoint"), **listed}
        gateways = self.importer.settings.gateways
        vendor, _, rest = unit.model.partition("/")
        name, _, provider = rest.partition(":")
        model = Model(
            id=unit.model,
            gateway=next((one.name for one in gateways if one.kind == GATEWAY), GATEWAY),
            request_name=unit.model,
            vendor=vendor,
            name=name,
            provider=provider or None,
            display_name=unit.model,
            context_length=read.count_in(said, "context_length") or None,
            max_output_tokens=read.count_in(said, "max_completion_tokens") or None,
        )
        return Sighting(model=model, selected=False, listed=False, seen_at=self.folder.began_at)

    def _origin(self, run: Run, file: read.ModelFile) -> convert.Origin:
        return convert.Origin(
            run.run_id,
            run.model,
            run.plan[0].suite,
            file.written_at or self.folder.began_at,
            self.importer.settings.redact,
        )

    def _answers(self, unit: read.Unit, run: Run) -> dict[str, Prediction]:
        """Return predictions by item; only what has none there is taken from the judged file."""
        planned = {key.item_id for key in run.plan}
        answers: dict[str, Prediction] = {}
        unknown = 0
        for file in unit.files:
            origin = self._origin(run, unit.files[0])
            for item_id, entry in file.entries.items():
                if item_id not in planned:
                    unknown += 1
                elif item_id not in answers:
                    answers[item_id] = convert.prediction_of(entry, item_id, origin)
        if unknown:
            self.folder.note(unit.model, f"{unknown} answers are to questions that are not listed.")
        return answers

    def _verdicts(
        self, unit: read.Unit, answers: Mapping[str, Prediction], run: Run
    ) -> Sequence[Judgement]:
        if unit.judged is None:
            return []
        origin, name = self._origin(run, unit.judged), unit.judged.judge
        known = self.folder.check_model(read.JUDGED_FILES, name) if name else None
        judge = known or convert.UNKNOWN_JUDGE
        verdicts, on_others = [], 0
        for item_id, answer in answers.items():
            entry = unit.judged.entries.get(item_id, {})
            verdict = convert.judgement_of(entry, answer, origin, judge)
            if verdict is None:
                continue
            judged = origin.clean(convert.reply_of(entry)) or ""
            if judged.strip() == (answer.answer or "").strip():
                verdicts.append(verdict)
            else:
                on_others += 1
        if on_others:
            self.folder.note(
                unit.model, f"{on_others} verdicts are on other answers than those in predictions/."
            )
        return verdicts


def _problem_of(folder: read.ResultsFolder) -> str | None:
    """Return why nothing of the folder can be imported."""
    if folder.stamp is None:
        return (
            "Neither its name nor that of a file in it tells when it was written, "
            "as 20250922_122904 would."
        )
    if not folder.question_ids:
        return "There is no question and no answer in it."
    if len(folder.question_ids) > read.MOST_QUESTIONS:
        return f"It is about more than {read.MOST_QUESTIONS:,} questions."
    return None
