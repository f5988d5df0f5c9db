"""How a launch ended: what came of it, what to do next, and with which exit code."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from eval_pipeline.cli.output import End, complain, end, print_json, printable, say, show
from eval_pipeline.cli.places import open_warehouse
from eval_pipeline.errors import MendableError
from eval_pipeline.finding import find_runs
from eval_pipeline.outputs import write_outputs
from eval_pipeline.progress import Watch
from eval_pipeline.queries import query, rows
from eval_pipeline.settings import Settings
from eval_pipeline.stages.workers import Tally

NAMES = {
    End.DONE: "done",
    End.FAILED: "failed",
    End.BUDGET: "budget",
    End.INTERRUPTED: "interrupted",
}


@dataclass(frozen=True)
class Ended:
    """What is known at the end of a launch: what the stages counted, and what went wrong."""

    tallies: Sequence[Tally]
    failures: Sequence[str]
    interrupted: bool

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
        asked = [tally for tally in self.tallies if tally.verb == "asked"]
        return bool(asked) and all(tally.stopped and not tally.planned for tally in asked)

    @staticmethod
    def in_vain(tally: Tally) -> int:
        """How much of it has to be tried again."""
        return sum(count for outcome, count in tally.outcomes.items() if not outcome.is_result)

    @property
    def run_ids(self) -> list[str]:
        return list(dict.fromkeys(tally.run_id for tally in self.tallies if tally.run_id))

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(tally.model for tally in self.tallies))

    @property
    def run(self) -> str:
        """The run to name in a command, if there is one: ` RUN`."""
        return f" {self.run_ids[0][:8]}" if len(self.run_ids) == 1 else ""

    def advice(self) -> str:
        """What to do next, as a command."""
        again = f"evals run --resume{self.run}" if self.run else "the same command"
        match self.how:
            case End.INTERRUPTED:
                return f"Stopped. What was answered is kept. To go on: {again}"
            case End.BUDGET:
                return f"The budget is reached. To go on with a larger one: {again} --budget USD"
            case End.FAILED if self.nobody_was_asked:
                return "Nobody could be asked."
            case End.FAILED:
                if not self.run_ids:
                    return "To see what is wrong: evals doctor. Then the same command goes on."
                return f"Some of it failed. To try that again: evals fix{self.run}"
        if not any(tally.planned for tally in self.tallies):
            return "Nothing was left to be asked or judged; with --fresh all is asked anew."
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
    try:
        kept = _keep_files(settings, ended)
    except (MendableError, OSError) as error:
        kept, failures = 0, [*failures, f"The files that models wrote were not kept: {error}"]
        ended = replace(ended, failures=failures)
    if as_json:
        told = {"ended": NAMES[ended.how], "runs": went, "failures": list(failures)}
        print_json({**told, "advice": ended.advice()})
    else:
        if went:
            show(_table(went))
        for failure in failures:
            complain(failure)
        if kept:
            say(f"Answers in code whose files are kept: {kept}, in {settings.output_dir}.")
        (say if ended.how is End.DONE else complain)(ended.advice())
    end(ended.how)


def _keep_files(settings: Settings, ended: Ended) -> int:
    """Puts what models wrote where people want to look at it, if anywhere."""
    if settings.output_dir is None or not ended.run_ids:
        return 0
    warehouse, models = open_warehouse(settings), set(ended.models)
    with warehouse.reading() as db:
        runs = [run for run_id in ended.run_ids for run in find_runs(db, run_id)]
        meant = [run for run in runs if run.model in models]
        return write_outputs(db, warehouse.journal, meant, settings.path(settings.output_dir))


def _how_runs_stand(settings: Settings, ended: Ended) -> list[dict[str, Any]]:
    if not ended.run_ids:
        return []
    with open_warehouse(settings).reading() as db:
        given = {"runs": ended.run_ids, "models": ended.models}
        worked_at = {(tally.run_id, tally.model) for tally in ended.tallies}
        found = rows(query(db, "summaries/launched", given))
        return [row for row in found if (row["run_id"], row["model"]) in worked_at]


def _table(went: Sequence[dict[str, Any]]) -> Table:
    """Narrow enough for any terminal."""
    simulated = " (SIMULATED models)" if all(row["simulated"] for row in went) else ""
    table = Table(
        title=f"How it went{simulated}",
        box=SIMPLE,
        padding=(0, 1),
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("model", overflow="fold")
    table.add_column("run")
    for heading in ("answered", "failed", "judged", "accuracy", "USD"):
        table.add_column(heading, justify="right")
    for row in went:
        table.add_row(
            Text(printable(row["model"])),
            row["run_id"][:8],
            f"{row['answered']}/{row['planned']}",
            str(row["failed"]),
            str(row["judged"]),
            _accuracy(row),
            "?" if row["cost_usd"] is None else f"{row['cost_usd']:.4f}",
        )
    return table


def _accuracy(row: dict[str, Any]) -> str:
    if row["accuracy"] is None:
        return ""
    return f"{row['accuracy']:.1%} ({row['accuracy_low']:.0%} to {row['accuracy_high']:.0%})"
