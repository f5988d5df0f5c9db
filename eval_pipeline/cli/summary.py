"""How a launch ended: what came of it, what to do next, and with which exit code."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from eval_pipeline.cli.output import End, complain, end, print_json, say, show
from eval_pipeline.cli.project import open_warehouse
from eval_pipeline.errors import MendableError
from eval_pipeline.evaluation.state import PAST_RUNS
from eval_pipeline.evaluation.workers import StageProgress, WorkedOn
from eval_pipeline.gateways.model_lists import shown
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.run import Scope
from eval_pipeline.results.outputs import write_outputs
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.runs import Row, failed_replies, find_runs
from eval_pipeline.results.tables.format import FittedTable, accuracy, named, usd
from eval_pipeline.settings.settings import Settings
from eval_pipeline.text import listed

# What the same request would meet again: somebody has to change something first.
NOT_MENDED_BY_REPEATING = {
    Outcome.BAD_REQUEST,
    Outcome.CONTEXT_TOO_LONG,
    Outcome.AUTH,
    Outcome.FORBIDDEN,
    Outcome.NO_CREDIT,
    Outcome.UNKNOWN_MODEL,
}


class Gap(NamedTuple):
    """The columns of a run whose counts differ where something is left, and how it is counted."""

    part: str
    whole: str
    one: str
    several: str


# Checks of what is left: they look at the latest run of a model, whichever the launch was about,
# and cannot but fail where a budget has stopped the work.
GAPS = {
    "every_planned_item_is_predicted": Gap(
        "answered", "planned", "planned reply is missing", "planned replies are missing"
    ),
    "every_prediction_is_judged": Gap(
        "judged", "answered", "reply has no verdict", "replies have no verdict"
    ),
}
LONGEST_EXAMPLE = 200
MOST_NAMED = 3
ASKED, JUDGED, ANALYSED = "asked", "judged", "analysed"
"""The verbs of tallies about replies, verdicts and failures."""


@dataclass(frozen=True)
class LaunchSummary:
    """What is known at the end of a launch: what the stages counted, and what went wrong."""

    tallies: Sequence[StageProgress]
    failures: Sequence[str]
    interrupted: bool
    # Whether it asked about a part of the items only, so that no leaderboard shows it.
    partial: bool = False
    # The answer to one request that failed.
    example: str = ""

    @property
    def how(self) -> End:
        """The exit code: what kept it from the end counts most."""
        if self.interrupted:
            return End.INTERRUPTED
        if any(tally.budget_reached for tally in self.tallies):
            return End.BUDGET
        failed = any(tally.failed or self.to_repeat(tally) for tally in self.tallies)
        return End.FAILED if failed or self.failures or self.all_passed_over else End.DONE

    @property
    def all_passed_over(self) -> bool:
        """Return whether every model to ask was skipped, each for a reason that its tally holds."""
        asked = [tally for tally in self.tallies if tally.verb == ASKED]
        return bool(asked) and all(tally.stopped and not tally.planned for tally in asked)

    @property
    def fails_again(self) -> bool:
        """Whether all that failed would do so again."""
        failed = {one for tally in self.tallies for one in tally.outcomes if not one.is_result}
        return bool(failed) and failed <= NOT_MENDED_BY_REPEATING

    @property
    def told_failures(self) -> list[str]:
        """Return the failures, without those that only follow from a spent budget."""
        if self.how is not End.BUDGET:
            return list(self.failures)
        following = tuple(f"The check {name} " for name in GAPS)
        return [one for one in self.failures if not one.startswith(following)]

    @staticmethod
    def to_repeat(tally: StageProgress) -> int:
        """Return how much of it has to be tried again."""
        return sum(count for outcome, count in tally.outcomes.items() if not outcome.is_result)

    @property
    def runs(self) -> list[WorkedOn]:
        """All that something was done for."""
        return list(dict.fromkeys(run for tally in self.tallies for run in tally.runs))

    @property
    def run(self) -> str:
        """The run to name in a command, if there is one: ` RUN`."""
        troubled = [one for one in self.tallies if one.stopped or self.to_repeat(one)]
        asked = [one for one in self.tallies if one.verb == ASKED]
        for some in (troubled, asked, self.tallies):
            if ids := {run.run_id for tally in some for run in tally.runs}:
                return f" {ids.pop()[:8]}" if len(ids) == 1 else ""
        return ""

    def advice(self) -> str:
        """Return what to do next, as a command."""
        match self.how:
            case End.INTERRUPTED:
                return f"Stopped. What was answered is kept. To go on: {self._again}"
            case End.BUDGET:
                return (
                    f"The budget is reached. To go on with a larger one: {self._again} --budget USD"
                )
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
        if self.all_passed_over:
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


def conclude(settings: Settings, summary: LaunchSummary, *, as_json: bool) -> None:
    """Print how the launch ended, and exit accordingly."""
    runs = _rows_of(settings, summary)
    of_these = [_about_these(one, runs) for one in summary.failures]
    failures, kept = [one for one in of_these if one is not None], 0
    try:
        kept = _keep_files(settings, summary)
    except (MendableError, OSError) as error:
        failures.append(f"The files that models wrote were not kept: {error}")
    partial, example = _is_partial(settings, runs), _example(settings, summary)
    summary = replace(summary, failures=failures, partial=partial, example=example)
    if as_json:
        told = {"ended": summary.how.word, "runs": runs, "failures": summary.told_failures}
        print_json({**told, "advice": summary.advice()})
    else:
        if runs:
            show(_table(runs))
        for failure in summary.told_failures:
            complain(failure, logging.ERROR)
        if kept:
            say(f"Answers in code whose files are kept: {kept}, in {settings.output_dir}.")
        if None in of_these:
            say("Something is missing in other runs: evals status")
        (say if summary.how is End.DONE else complain)(summary.advice())
    end(summary.how)


def _about_these(failure: str, runs: Sequence[Row]) -> str | None:
    """Return the failure as far as it is about these runs; None if it is about others alone."""
    for check, gap in GAPS.items():
        if runs and failure.startswith(f"The check {check} "):
            lacking = [row for row in runs if row[gap.part] < row[gap.whole]]
            return f"The check {check} failed: {_missing(lacking, gap)}." if lacking else None
    return failure


def _missing(lacking: Sequence[Row], gap: Gap) -> str:
    count = sum(row[gap.whole] - row[gap.part] for row in lacking)
    names = [f"{row['model']} (run {row['run_id'][:8]})" for row in lacking]
    noun = gap.one if count == 1 else gap.several
    return f"{count} {noun}: {listed(names, MOST_NAMED)}"


def _is_partial(settings: Settings, rows: Sequence[Row]) -> bool:
    """Return whether there are runs, all of them filtered."""
    journal = open_warehouse(settings).journal
    runs = [
        run for row in rows for run in journal.read_file(PAST_RUNS, row["model"], row["run_id"])
    ]
    return bool(runs) and all(run.scope is Scope.FILTERED for run in runs)


def _example(settings: Settings, summary: LaunchSummary) -> str:
    """Return the answer to the first request that failed, in a line that is fit to be printed."""
    if not summary.fails_again:
        return ""
    runs = [one._asdict() for one in summary.runs]
    with open_warehouse(settings).reading() as db:
        failed = [one for one in failed_replies(db, runs, 1) if one["went"] != "wrong"]
    said = next((one["error"] or one["reason"] or one["outcome"] for one in failed), "")
    return shown(said, settings.redact, limit=LONGEST_EXAMPLE)


def _keep_files(settings: Settings, summary: LaunchSummary) -> int:
    """Write the files of models' answers to the output folder, if there is one; count them."""
    if settings.output_dir is None or not summary.runs:
        return 0
    warehouse, worked_on = open_warehouse(settings), set(summary.runs)
    with warehouse.reading() as db:
        ids = dict.fromkeys(run.run_id for run in summary.runs)
        runs = [run for run_id in ids for run in find_runs(db, run_id)]
        meant = [run for run in runs if WorkedOn(run.run_id, run.model) in worked_on]
        return write_outputs(db, warehouse.journal, meant, settings.path(settings.output_dir))


def _rows_of(settings: Settings, summary: LaunchSummary) -> list[Row]:
    if not summary.runs:
        return []
    run_ids, models = map(list, zip(*summary.runs, strict=True))
    with open_warehouse(settings).reading() as db:
        found = rows(query(db, "summaries/launched", {"runs": run_ids, "models": models}))
    return [row for row in found if WorkedOn(row["run_id"], row["model"]) in summary.runs]


def _table(rows: Sequence[Row]) -> FittedTable:
    simulated = " (SIMULATED models)" if all(row["simulated"] for row in rows) else ""
    columns = ("model", "run", "answered", "failed", "judged", "accuracy", "USD")
    table = FittedTable(
        f"How it went{simulated}", *columns, right=columns[2:], dropped_first=["USD"]
    )
    for row in rows:
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
