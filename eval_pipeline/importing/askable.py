"""Whether an imported run can go on: its questions may be known here by their ids alone."""

from collections.abc import Mapping

from eval_pipeline.benchmark import past_items
from eval_pipeline.journal import RUNS, Journal
from eval_pipeline.records import ExamQuestion, Item, ItemKey, Run
from eval_pipeline.runs import IMPORTED, RunError


def refuse_without_text(run: Run, items: Mapping[ItemKey, Item]) -> None:
    """Nobody can be asked, and nothing judged, by the id of a question."""
    if _has_text(run, items):
        return
    name = run.run_id[:8]
    raise RunError(
        f"Run {name} of {run.model} was imported without the text of its questions: name the "
        "suite that has them under [[suites]] in eval_pipeline.toml (for Humanity's Last Exam "
        f'hub = {{ repository = "cais/hle", … }}), then evals delete {name}, and import again.'
    )


def refuse_untold(journal: Journal, model: str, run_id: str) -> None:
    """The same before anything is launched."""
    run = next(journal.read_file(RUNS, model, run_id))
    if IMPORTED in run.parameters:
        refuse_without_text(run, past_items(journal, run.benchmark_version))


def can_go_on(journal: Journal, model: str, run_id: str) -> bool:
    """Whether there is something to ask by."""
    run = next(journal.read_file(RUNS, model, run_id))
    if IMPORTED not in run.parameters:
        return True
    return _has_text(run, past_items(journal, run.benchmark_version))


def _has_text(run: Run, items: Mapping[ItemKey, Item]) -> bool:
    first = items[run.plan[0]]
    return not isinstance(first, ExamQuestion) or bool(first.question)
