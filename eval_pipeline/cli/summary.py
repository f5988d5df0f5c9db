"""How a launch ended: what came of it, what to do next, and with which exit code."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from eval_pipeline.cli.output import End, complain, end, open_warehouse, print_json, say, show
from eval_pipeline.errors import MendableError
from eval_pipeline.evaluation.progress import Watch
from eval_pipeline.evaluation.state import PAST_RUNS
from eval_pipeline.evaluation.workers import StageProgress, WorkedOn
from eval_pipeline.gateways.model_lists import shown
from eval_pipeline.journal.deployment import open_journal
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.run import Scope
from eval_pipeline.results.outputs import write_outputs
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.runs import failed_replies, find_runs
from eval_pipeline.results.tables.format import FittedTable, accuracy, named, usd
from eval_pipeline.settings.settings import Settings

# What the same request would meet again: somebody has to change something first.
NOT_MENDED_BY_REPEATING = {
    Outcome.BAD_REQUEST,
    Outcome.CONTEXT_TOO_LONG,
    Outcome.AUTH,
    Outcome.FORBIDDEN,
    Outcome.NO_CREDIT,
    Outcome.UNKNOWN_MODEL,
}


class Left(NamedTuple):
    """What there is less of in a run where something is left, and what is said of one and more."""

    part: str
    whole: str
    one: str
    several: str


# Checks of what is left: they look at the latest run of a model, whichever the launch was about,
# and can not but fail where a budget has stopped the work.
OF_WHAT_IS_LEFT = {
    "every_planned_item_is_predicted": Left(
        "answered", "planned", "planned reply is missing", "planned replies are missing"
    ),
    "every_prediction_is_judged": Left(
        "judged", "answered", "reply has no verdict", "replies have no verdict"
    ),
}
LONGEST_EXAMPLE = 200
MOST_NAMED = 3
ASKED = "asked"
"""The verb of tallies that are about replies."""
JUDGED = "judged"
"""The verb of those that are about verdicts."""
ANALYSED = "analysed"
"""The verb of those that are about failures."""
NAMES = {
    End.DONE: "done",
    End.FAILED: "failed",
    End.BUDGET: "budget",
    End.INTERRUPTED: "interrupted",
}


@dataclass(frozen=True)
class Ended:
    """What is known at the end of a launch: what the stages counted, and what went wrong."""

    tallies: Sequence[StageProgress]
    failures: Sequence[str]
    interrupted: bool
    # Whether it asked about a part of the items only, so that no leaderboard shows it.
    partial: bool = False
    # What was said to one request that failed.
    example: str = ""

    @property
    def how(self) -> End:
        """The exit code: what kept it from the end counts most."""
        if self.interrupted:
            return End.INTERRUPTED
        if any(tally.budget_reached for tally in self.tallies):
            return End.BUDGET
        failed = any(tally.failed or self.in_vain(tally) for tally in self.tallies)
        return End.FAILED if failed or self.failures or self.nobody_was_asked else End.DONE

    @property
    def nobody_was_asked(self) -> bool:
        """Whether each model was passed over, for a reason that its tally tells."""
        asked = [tally for tally in self.tallies if tally.verb == ASKED]
        return bool(asked) and all(tally.stopped and not tally.planned for tally in asked)

    @property
    def fails_again(self) -> bool:
        """Whether all that failed would do so again."""
        failed = {one for tally in self.tallies for one in tally.outcomes if not one.is_result}
        return bool(failed) and failed <= NOT_MENDED_BY_REPEATING

    @property
    def told_failures(self) -> list[str]:
        """What went wrong, less what follows from a budget that is spent."""
        if self.how is not End.BUDGET:
            return list(self.failures)
        following = tuple(f"The check {name} " for name in OF_WHAT_IS_LEFT)
        return [one for one in self.failures if not one.startswith(following)]

    @staticmethod
    def in_vain(tally: StageProgress) -> int:
        """How much of it has to be tried again."""
        return sum(count for outcome, count in tally.outcomes.items() if not outcome.is_result)

    @property
    def runs(self) -> list[WorkedOn]:
        """All that something was done for."""
        return list(dict.fromkeys(run for tally in self.tallies for run in tally.runs))

    @property
    def run(self) -> str:
        """The run to name in a command, if there is one: ` RUN`."""
        troubled = [one for one in self.tallies if one.stopped or self.in_vain(one)]
        asked = [one for one in self.tallies if one.verb == ASKED]
        for some in (troubled, asked, self.tallies):
            if ids := {run.run_id for tally in some for run in tally.runs}:
                return f" {ids.pop()[:8]}" if len(ids) == 1 else ""
        return ""

    def advice(self) -> str:
        """What to do next, as a command."""
        match self.how:
            case End.INTERRUPTED:
                return f"Stopped. What was answered is kept. To go on: {self._again}"
            case End.BUDGET:
                wanted = f"{self._again} --budget USD"
                return f"The budget is reached. To go on with a larger one: {wanted}"
            case End.FAILED:
                return self._after_failures()
        return self._when_done()

    @property
    def _again(self) -> str:
        """The command that goes on."""
        if not self.run:
            return "the same command"
        only_judged = all(tally.verb == JUDGED for tally in self.tallies)
        return f"evals fix{self.run} --judge" if only_judged else f"evals run --resume{self.run}"

    def _after_failures(self) -> str:
        if self.nobody_was_asked:
            return "Nobody could be asked."
        if not self.runs:
            return "To see what is wrong: evals doctor. Then the same command goes on."
        if not self.fails_again:
            return f"Some of it failed. To try that again: evals fix{self.run}"
        said = f" ({self.example})" if self.example else ""
        return (
            f"Some of it failed, and would fail again{said}. To see what: "
            f"evals status{self.run} --failed"
        )

    def _when_done(self) -> str:
        if any(tally.verb == ANALYSED for tally in self.tallies):
            return "Done. What was found out is in reports/; to see where: evals analyze"
        if not any(tally.planned for tally in self.tallies):
            return "Nothing was left to be asked or judged; with --fresh all is asked anew."
        if all(tally.verb == ASKED for tally in self.tallies):
            return f"Done. To judge the answers: evals fix{self.run} --judge"
        if self.partial:
            return f"Done. To see how good the answers are: evals metrics{self.run}"
        return "Done. To see who is best: evals leaderboard"


def conclude(
    settings: Settings,
    watch: Watch,
    failures: Sequence[str],
    *,
    interrupted: bool,
    as_json: bool,
) -> None:
    """Tells how it ended, and ends the command so."""
    tallies = [tally for stage in watch.stages for tally in stage.tallies]
    ended = Ended(tallies, failures, interrupted)
    went = _how_runs_stand(settings, ended)
    of_these = [_about_these(one, went) for one in failures]
    failures = [one for one in of_these if one is not None]
    ended = replace(ended, failures=failures)
    ended = replace(ended, partial=_is_partial(settings, went), example=_example(settings, ended))
    try:
        kept = _keep_files(settings, ended)
    except (MendableError, OSError) as error:
        kept, failures = 0, [*failures, f"The files that models wrote were not kept: {error}"]
        ended = replace(ended, failures=failures)
    if as_json:
        told = {"ended": NAMES[ended.how], "runs": went, "failures": ended.told_failures}
        print_json({**told, "advice": ended.advice()})
    else:
        if went:
            show(_table(went))
        for failure in ended.told_failures:
            complain(failure, logging.ERROR)
        if kept:
            say(f"Answers in code whose files are kept: {kept}, in {settings.output_dir}.")
        if None in of_these:
            say("Something is missing in other runs: evals status")
        (say if ended.how is End.DONE else complain)(ended.advice())
    end(ended.how)


def _about_these(failure: str, went: Sequence[dict[str, Any]]) -> str | None:
    """What went wrong, of the runs of this launch; None if it is about others alone."""
    for check, left in OF_WHAT_IS_LEFT.items():
        if went and failure.startswith(f"The check {check} "):
            lacking = [row for row in went if row[left.part] < row[left.whole]]
            return f"The check {check} failed: {_left_in(lacking, left)}." if lacking else None
    return failure


def _left_in(lacking: Sequence[dict[str, Any]], left: Left) -> str:
    count = sum(row[left.whole] - row[left.part] for row in lacking)
    names = [f"{row['model']} (run {row['run_id'][:8]})" for row in lacking]
    more = len(names) - MOST_NAMED
    others = f" and {more} more" if more > 0 else ""
    noun = left.one if count == 1 else left.several
    return f"{count} {noun}: {', '.join(names[:MOST_NAMED])}{others}"


def _is_partial(settings: Settings, went: Sequence[dict[str, Any]]) -> bool:
    """Whether there are runs, all of them filtered."""
    journal = open_journal(settings)
    named = [(row["model"], row["run_id"]) for row in went]
    runs = [run for name in named for run in journal.read_file(PAST_RUNS, *name)]
    return bool(runs) and all(run.scope is Scope.FILTERED for run in runs)


def _example(settings: Settings, ended: Ended) -> str:
    """What the first request that failed was told, in a line that is fit to be printed."""
    if not ended.fails_again:
        return ""
    runs = [one._asdict() for one in ended.runs]
    with open_warehouse(settings).reading() as db:
        failed = [one for one in failed_replies(db, runs, 1) if one["went"] != "wrong"]
    said = next((one["error"] or one["reason"] or one["outcome"] for one in failed), "")
    return shown(said, settings.redact, limit=LONGEST_EXAMPLE)


def _keep_files(settings: Settings, ended: Ended) -> int:
    """Puts what models wrote where people want to look at it, if anywhere."""
    if settings.output_dir is None or not ended.runs:
        return 0
    warehouse, worked_on = open_warehouse(settings), set(ended.runs)
    with warehouse.reading() as db:
        ids = dict.fromkeys(run.run_id for run in ended.runs)
        runs = [run for run_id in ids for run in find_runs(db, run_id)]
        meant = [run for run in runs if WorkedOn(run.run_id, run.model) in worked_on]
        return write_outputs(db, warehouse.journal, meant, settings.path(settings.output_dir))


def _how_runs_stand(settings: Settings, ended: Ended) -> list[dict[str, Any]]:
    worked_on = set(ended.runs)
    if not worked_on:
        return []
    run_ids, models = map(list, zip(*worked_on, strict=True))
    with open_warehouse(settings).reading() as db:
        found = rows(query(db, "summaries/launched", {"runs": run_ids, "models": models}))
        return [row for row in found if WorkedOn(row["run_id"], row["model"]) in worked_on]


def _table(went: Sequence[dict[str, Any]]) -> FittedTable:
    simulated = " (SIMULATED models)" if all(row["simulated"] for row in went) else ""
    columns = ("model", "run", "answered", "failed", "judged", "accuracy", "USD")
    table = FittedTable(
        f"How it went{simulated}", *columns, right=columns[2:], dropped_first=["USD"]
    )
    for row in went:
        table.add(
            named(row["model"]),
            row["run_id"][:8],
            f"{row['answered']}/{row['planned']}",
            str(row["failed"]),
            str(row["judged"]),
            accuracy(row),
            usd(row["cost_usd"]),
        )
    return table
