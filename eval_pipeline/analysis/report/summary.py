"""The numbers of a report: its tables, and the score with and without unfair failures."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from tabulate import tabulate

from eval_pipeline.analysis.failures import WRONG
from eval_pipeline.analysis.report.data import ANSWER, ReportData, inline, name_of, step_of
from eval_pipeline.records.coding import STEPS
from eval_pipeline.records.diagnosis import Classification
from eval_pipeline.results.runs import Row
from eval_pipeline.results.stats.intervals import wilson

_ORDER = {step: number for number, step in enumerate((*STEPS, ANSWER))}


def steps_table(data: ReportData) -> str:
    """Return how many answers failed at which step."""
    found = Counter(map(step_of, data.wrong))
    steps = sorted(found, key=lambda step: (_ORDER.get(step, len(_ORDER)), step))
    return _table(["step", "failures"], [[inline(step), found[step]] for step in steps])


def classification_table(data: ReportData) -> str:
    """Return how many failures have which classification, or none."""
    found = Counter(row["classification"] or "not classified" for row in data.wrong)
    shares = {name: found[name] / max(len(data.wrong), 1) for name in (*Classification, *found)}
    cells = [[str(name), found[name], _percent(share)] for name, share in shares.items()]
    return _table(["classification", "failures", "share"], cells)


def unclassified_because(data: ReportData) -> list[tuple[str, int]]:
    """Return why failures have no classification, and how many."""
    return Counter(map(why_unclassified, data.classified(None))).most_common()


def why_unclassified(row: Row) -> str:
    """Return why the failure has no classification."""
    if row["analyst"] is None:
        return "it was not looked into"
    return f"the analyst has no explanation: {row['unexplained_because'] or 'it said nothing'}"


def infrastructure_table(data: ReportData) -> str:
    """Return what failed on the way to an answer or a verdict, with an example of each."""
    alike: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in data.infrastructure:
        asked = row["outcome"] if row["went"] == "no answer" else row["judge_outcome"]
        alike[row["went"], asked or "unknown"].append(row)
    cells = []
    for (went, outcome), rows in sorted(alike.items(), key=lambda one: -len(one[1])):
        said = rows[0]["error"] if went == "no answer" else rows[0]["reason"]
        example = (inline(name_of(rows[0])), inline(said or ""))
        cells.append([went, inline(outcome), len(rows), *example])
    return _table(["what is missing", "outcome", "times", "for example", "what was said"], cells)


def pass_rate(run: Row) -> str:
    """Return how much is right, of how much."""
    if run["accuracy"] is None:
        return "nothing is judged"
    share = _percent(run["accuracy"])
    low, high = run["accuracy_low"], run["accuracy_high"]
    if low is not None and high is not None:
        share += f" (95 % interval {_percent(low)} to {_percent(high)})"
    missing = run["planned"] - run["judged"]
    unjudged = f"; {missing} of {run['planned']} planned have no score" if missing else ""
    return f"{run['correct']:g} of {run['judged']} right, {share}{unjudged}"


def fair_score(data: ReportData) -> str:
    """Return the score if unfair failures did not count.

    Its interval is cautious: an item with several replies counts as if it had one.
    """
    run, unfair = data.run, data.unfair
    if not unfair:
        return "the same"
    hits, of = (run["correct"] or 0) - sum(map(_points, unfair)), run["judged"] - len(unfair)
    what = "replies"
    if means := list(_means(data)) if run["samples"] > 1 else []:
        left = [mean for mean in means if mean is not None]
        hits, of, what = sum(left), len(left), "items, each the mean of its replies"
    interval = wilson(min(hits, of), of) if of > 0 else None
    if interval is None:
        return "nothing is left to score"
    within = f"{_percent(interval.low)} to {_percent(interval.high)}"
    counted = f"{round(hits, 2):g} of {of} {what}"
    return f"{_percent(hits / of)} ({counted}; 95 % interval {within})"


def _means(data: ReportData) -> Iterator[float | None]:
    """Yield the mean of each item's fair replies; nothing if a reply is not accounted for."""
    run = data.run
    of_items: dict[str, list[Row]] = defaultdict(list)
    for row in data.failures:
        of_items[name_of(row)].append(row)
    if run["items"] * run["samples"] - len(data.infrastructure) != run["judged"]:
        return
    yield from [1.0] * (run["items"] - len(of_items))
    left_out = {id(row) for row in data.unfair}
    for rows in of_items.values():
        wrong = [row for row in rows if row["went"] == WRONG and id(row) not in left_out]
        right = run["samples"] - len(rows)
        counting = right + len(wrong)
        yield (right + sum(map(_points, wrong))) / counting if counting else None


def _table(columns: Sequence[str], cells: Sequence[Sequence[object]]) -> str:
    return tabulate(cells, columns, tablefmt="pipe", disable_numparse=True)


def _points(row: Row) -> float:
    return float(row["score"] or 0)


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"
