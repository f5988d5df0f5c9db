"""Whether an imported run can go on: its questions may be known here by their ids alone."""

from collections.abc import Mapping

from eval_pipeline.records import ExamQuestion, Item, ItemKey, Run
from eval_pipeline.runs import RunError


def refuse_without_text(run: Run, items: Mapping[ItemKey, Item]) -> None:
    """Nobody can be asked, and nothing judged, by the id of a question."""
    first = items[run.plan[0]]
    if isinstance(first, ExamQuestion) and not first.question:
        name = run.run_id[:8]
        raise RunError(
            f"Run {name} of {run.model} was imported without the text of its questions: name the "
            "suite that has them under [[suites]] in eval_pipeline.toml (for Humanity's Last Exam "
            f'hub = {{ repository = "cais/hle", … }}), then evals delete {name}, and import again.'
        )
