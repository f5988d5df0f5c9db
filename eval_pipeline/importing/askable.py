"""Whether an imported run can go on: its questions may be known here by their ids alone."""

from collections.abc import Iterable, Iterator, Mapping

from eval_pipeline.benchmark import past_items
from eval_pipeline.errors import RunError
from eval_pipeline.journal import RUNS, Journal
from eval_pipeline.records import ExamQuestion, Item, ItemKey, Run
from eval_pipeline.results.runs import FoundRun


def refuse_without_text(run: Run, items: Mapping[ItemKey, Item]) -> None:
    """Nobody can be asked, and nothing judged, by the id of a question."""
    if not _has_text(run, items):
        raise untold_error(run)


def untold(journal: Journal, found: Iterable[FoundRun]) -> Iterator[Run]:
    """Those of them that were imported without the text of their questions."""
    # Many models of one launch were asked the same questions, which may be large.
    told: dict[str, bool] = {}
    for one in found:
        run = next(journal.read_file(RUNS, one.model, one.run_id))
        if not run.is_imported:
            continue
        version = run.benchmark_version
        if version not in told:
            told[version] = _has_text(run, past_items(journal, version))
        if not told[version]:
            yield run


def untold_error(run: Run) -> RunError:
    """What to do about it."""
    name = run.run_id[:8]
    return RunError(
        f"Run {name} of {run.model} was imported without the text of its questions: name the "
        "suite that has them under [[suites]] in eval_pipeline.toml (for Humanity's Last Exam "
        f'hub = {{ repository = "cais/hle", … }}), then evals delete {name}, and import again.'
    )


def _has_text(run: Run, items: Mapping[ItemKey, Item]) -> bool:
    first = items[run.plan[0]]
    return not isinstance(first, ExamQuestion) or bool(first.question)
