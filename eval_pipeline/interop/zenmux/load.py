"""Takes a results folder into the journal as runs: each record once, however often it is read."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from secrets import token_hex
from typing import NamedTuple

from eval_pipeline.evaluation.deletion import is_at_work
from eval_pipeline.evaluation.runs import scope_of
from eval_pipeline.evaluation.state import (
    JUDGEMENT_BRIEFS,
    PREDICTION_BRIEFS,
    FinalPredictions,
    JudgeKey,
    read_run,
)
from eval_pipeline.interop.remote.receive import keep_sighting
from eval_pipeline.interop.zenmux.convert import (
    LONGEST_ERROR,
    SOURCE,
    UNKNOWN_JUDGE,
    Origin,
    judgement_of,
    prediction_of,
    reply_of,
)
from eval_pipeline.interop.zenmux.files import count_in, number_in, object_in
from eval_pipeline.interop.zenmux.read import (
    JUDGED_FILES,
    MOST_QUESTIONS,
    ModelFile,
    ResultsFolder,
    Unit,
    checked,
    references_in,
    units,
)
from eval_pipeline.interop.zenmux.suites import Home, Homes
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, BusyError, Journal
from eval_pipeline.records.base import whole_characters
from eval_pipeline.records.item import ItemKey
from eval_pipeline.records.model import Model, Sighting
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import FAILED_THERE, IMPORTED_FROM, Run, Scope
from eval_pipeline.settings.settings import Settings

_TICK = timedelta(microseconds=1)


class KnownOfRun:
    """The replies and verdicts of a run, by what names them."""

    def __init__(self, journal: Journal, run: Run) -> None:
        self.ids: set[str] = set()
        self._finals = FinalPredictions(run.plan)
        self._judged: dict[tuple[str, JudgeKey], bool] = {}
        for one in journal.read(PREDICTION_BRIEFS, run.model, run.run_id):
            self.ids.add(one.prediction_id)
            self._finals.add(one)
        for verdict in journal.read(JUDGEMENT_BRIEFS, run.model, run.run_id):
            key = verdict.prediction_id, verdict.by
            self._judged[key] = self._judged.get(key, False) or verdict.score is not None

    def lacks(self, prediction: Prediction) -> Prediction | None:
        """Return the prediction as it is to be kept, unless the reply has one already."""
        final = self._finals.find(prediction.key)
        if prediction.prediction_id in self.ids or (final and final.is_result):
            return None
        if final is None or final.finished_at < prediction.finished_at:
            return prediction
        # Repaired there, in a file that still says when it was written at first.
        return prediction.model_copy(update={"finished_at": final.finished_at + _TICK})

    def lacks_verdict(self, one: Judgement) -> bool:
        """Return whether no verdict here says as much yet."""
        has_score = self._judged.get((one.prediction_id, JudgeKey(one.judge, one.judge_version)))
        return has_score is None or (one.score is not None and not has_score)


GATEWAY = "zenmux"


class Taken(NamedTuple):
    """What of a run was not here before, and how the run is."""

    run_id: str
    model: str
    suite: str
    is_new: bool
    planned: int
    predictions: int
    judgements: int
    error: str | None = None

    @property
    def is_changed(self) -> bool:
        return bool(self.is_new or self.predictions or self.judgements)


@dataclass(frozen=True)
class Importer:
    """Where folders are taken in."""

    journal: Journal
    settings: Settings

    @cached_property
    def homes(self) -> Homes:
        return Homes(self.journal, self.settings)

    @cached_property
    def gateway(self) -> str:
        """Through whom its models are asked here."""
        kinds = (one.name for one in self.settings.gateways if one.kind == GATEWAY)
        return next(kinds, GATEWAY)

    def take(self, folder: ResultsFolder) -> Iterator[Taken]:
        """Every model's run, as soon as it is on disk; what can not be taken, the folder notes."""
        if problem := _unfit(folder):
            folder.note("", problem)
            return
        place = _Place(self, folder)
        for unit in units(folder):
            try:
                yield place.take(unit)
            except BusyError as busy:
                folder.note(unit.model, str(busy))


@dataclass(frozen=True)
class _Place:
    """One folder on its way in."""

    importer: Importer
    folder: ResultsFolder

    @cached_property
    def home(self) -> Home:
        """Where its questions belong; if nowhere, they get a version of their own."""
        ids, homes = self.folder.question_ids, self.importer.homes
        found = homes.find(ids)
        return found or homes.make(ids, references_in(self.folder), self.folder.began_at)

    @cached_property
    def plan(self) -> tuple[ItemKey, ...]:
        return self.home.plan(frozenset(self.folder.question_ids))

    @cached_property
    def scope(self) -> Scope:
        return scope_of(self.plan, self.home.benchmark.items)

    def take(self, unit: Unit) -> Taken:
        """Writes what is not here yet; interrupted, it is simply done again."""
        journal, run_id = self.importer.journal, self.folder.run_id
        with self._alone(unit.model):
            is_new = not journal.exists(RUNS, unit.model, run_id)
            run = self._opened(unit) if is_new else read_run(journal, unit.model, run_id)
            here = KnownOfRun(journal, run)
            answers = self._answers(unit, run)
            new = [one for answer in answers.values() if (one := here.lacks(answer))]
            verdicts = self._verdicts(unit, answers, run)
            known = here.ids.union(one.prediction_id for one in new)
            given = [one for one in verdicts if one.prediction_id in known]
            given = [one for one in given if here.lacks_verdict(one)]
            self._write(run, new, given)
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
        """With what the model ended there, if it did not get to the end."""
        result = self.folder.results.get(model)
        if result is None or result.error is None:
            return None
        text = whole_characters(result.error[:LONGEST_ERROR])
        return self.importer.settings.redact(text)

    @contextmanager
    def _alone(self, model: str) -> Iterator[None]:
        journal = self.importer.journal
        with journal.claim_soon(PREDICTIONS, model), journal.claim_soon(JUDGED, model):
            if is_at_work(journal, model, self.folder.run_id):
                raise BusyError(f"A launch is at work on {model}: import again when it is done.")
            yield

    def _opened(self, unit: Unit) -> Run:
        said = object_in(unit.metadata, "evaluation_config")
        how = {
            "temperature": number_in(said, "temperature", 2),
            "max_tokens": count_in(said, "max_completion_tokens") or None,
            FAILED_THERE: None if unit.has_entries else self._error(unit.model),
        }
        suites = (self.home.suite,) if self.home.several_suites else ()
        run = Run(
            run_id=self.folder.run_id,
            model=unit.model,
            experiment="default",
            benchmark_version=self.home.version,
            plan=self.plan,
            plan_filter=self.folder.plan_filter.model_copy(update={"suites": suites}),
            scope=self.scope,
            parameters={
                IMPORTED_FROM: SOURCE,
                **{name: one for name, one in how.items() if one is not None},
            },
            simulated=False,
            opened_at=self.folder.began_at,
        )
        keep_sighting(self.importer.journal, self._sighting(unit))
        self.importer.journal.write_whole(RUNS, run.model, run.run_id, records=[run])
        return run

    def _sighting(self, unit: Unit) -> Sighting:
        said = {
            **object_in(unit.metadata, "endpoint"),
            **self.folder.listed_models.get(unit.model, {}),
        }
        vendor, _, rest = unit.model.partition("/")
        name, _, provider = rest.partition(":")
        model = Model(
            id=unit.model,
            gateway=self.importer.gateway,
            request_name=unit.model,
            vendor=vendor,
            name=name,
            provider=provider or None,
            display_name=unit.model,
            context_length=count_in(said, "context_length") or None,
            max_output_tokens=count_in(said, "max_completion_tokens") or None,
        )
        return Sighting(model=model, selected=False, listed=False, seen_at=self.folder.began_at)

    def _origin(self, run: Run, file: ModelFile | None) -> Origin:
        written = file.written_at if file else None
        return Origin(
            run.run_id,
            run.model,
            run.plan[0].suite,
            written or self.folder.began_at,
            self.importer.settings.redact,
        )

    def _answers(self, unit: Unit, run: Run) -> dict[str, Prediction]:
        """By item; what only the judged file has is taken from there."""
        planned = {key.item_id for key in run.plan}
        answers: dict[str, Prediction] = {}
        unknown = 0
        for file in (unit.answered, unit.judged):
            origin = self._origin(run, unit.answered or file)
            for item_id, entry in (file.entries if file else {}).items():
                if item_id not in planned:
                    unknown += 1
                elif item_id not in answers:
                    answers[item_id] = prediction_of(entry, item_id, origin)
        if unknown:
            self.folder.note(unit.model, f"{unknown} answers are to questions that are not listed.")
        return answers

    def _verdicts(
        self, unit: Unit, answers: Mapping[str, Prediction], run: Run
    ) -> Iterator[Judgement]:
        if unit.judged is None:
            return
        origin, judge = self._origin(run, unit.judged), self._judge(unit.judged)
        on_others = 0
        for item_id, entry in unit.judged.entries.items():
            answer = answers.get(item_id)
            if answer is None:
                continue
            verdict = judgement_of(entry, answer, origin, judge)
            if verdict is None:
                continue
            if origin.clean(reply_of(entry)).strip() != (answer.answer or "").strip():
                on_others += 1
            else:
                yield verdict
        if on_others:
            self.folder.note(
                unit.model, f"{on_others} verdicts are on other answers than those in predictions/."
            )

    def _judge(self, file: ModelFile) -> str:
        """Who gave the verdicts, as far as a name of a model is said."""
        said = file.judge
        return (said and checked(self.folder, JUDGED_FILES, said)) or UNKNOWN_JUDGE

    def _write(
        self, run: Run, predictions: Sequence[Prediction], judgements: Sequence[Judgement]
    ) -> None:
        journal, name = self.importer.journal, f"imported-{token_hex(6)}"
        if predictions:
            journal.write_whole(PREDICTIONS, run.model, run.run_id, name, records=predictions)
        if judgements:
            journal.write_whole(JUDGED, run.model, run.run_id, name, records=judgements)


def _unfit(folder: ResultsFolder) -> str | None:
    """Why nothing of the folder can be taken."""
    if folder.stamp is None:
        return (
            "Neither its name nor that of a file in it tells when it was written, "
            "as 20250922_122904 would."
        )
    if not folder.question_ids:
        return "There is no question and no answer in it."
    if len(folder.question_ids) > MOST_QUESTIONS:
        return f"It is about more than {MOST_QUESTIONS:,} questions."
    return None
