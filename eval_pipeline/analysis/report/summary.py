"""The sections of a report that count: the run, and where and whose the failures are."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tabulate import tabulate

from eval_pipeline.analysis.failures import WRONG
from eval_pipeline.analysis.report.data import ANSWER, ReportData, inline, name_of, step_of
from eval_pipeline.analysis.report.failures import why_unclassified
from eval_pipeline.records.coding import STEPS
from eval_pipeline.records.diagnosis import Classification
from eval_pipeline.results.runs import Row
from eval_pipeline.results.stats.intervals import Interval, wilson
from eval_pipeline.results.tables.format import minute

_ORDER = {step: number for number, step in enumerate((*STEPS, ANSWER))}
_SENTENCE = 1000
SIMULATED = "SIMULATED: its skill is invented, and says nothing about any real model"

_OF_ITEMS = "items, each the mean of its replies"


class Score(NamedTuple):
    """A mean of so many: replies, or items where each of them has several."""

    hits: float
    of: int
    what: str = "replies"

    @property
    def share(self) -> float:
        return self.hits / self.of

    @property
    def interval(self) -> Interval | None:
        """Of items with several replies it is cautious: each counts as if it had one."""
        return wilson(min(self.hits, self.of), self.of)


def metadata_text(data: ReportData) -> str:
    """What was measured, by whom, and when."""
    return "\n".join(["## Metadata\n", *(f"- {label}: {text}" for label, text in _facts(data))])


def steps_text(data: ReportData) -> str:
    """Where answers failed."""
    found = Counter(map(step_of, data.wrong))
    steps = sorted(found, key=lambda step: (_ORDER.get(step, len(_ORDER)), step))
    table = _table(["step", "failures"], [[inline(step), found[step]] for step in steps])
    return f"## Failures by step\n\n{table if steps else 'None.'}"


def classification_text(data: ReportData) -> str:
    """Whose failures they are, who said so, and which nobody has looked into."""
    total = len(data.wrong)
    found = Counter(row["classification"] for row in data.wrong)
    cells = [
        [one.value, found[one], _percent(found[one] / max(total, 1))] for one in Classification
    ]
    if found[None]:
        cells.append(["not classified", found[None], _percent(found[None] / total)])
    parts = ["## Classification", _table(["classification", "failures", "share"], cells)]
    overridden = sum(bool(row["overridden"]) for row in data.wrong)
    by_analyst = total - overridden - sum(not row["classification"] for row in data.wrong)
    parts.append(f"Set by people: {overridden}; by the analyst: {by_analyst}.")
    if total:
        command = f"evals classify {inline(data.run_name)} ITEM CLASSIFICATION --note WHY"
        again = f"evals analyze {inline(data.run_name)}"
        parts.append(f"To disagree: {command}; then {again} renews this report.")
    why = Counter(why_unclassified(row) for row in data.wrong if not row["classification"])
    if why:
        said = (f"- {inline(reason)} ({number})" for reason, number in why.most_common())
        parts += ["Not classified:", "\n".join(said)]
    return "\n\n".join(parts)


def infrastructure_text(data: ReportData) -> str:
    """What came to nothing on the way, which is nobody's wrong answer."""
    rows = data.infrastructure
    if not rows:
        return "## Infrastructure\n\nNothing failed on the way to an answer or to a verdict."
    found = Counter(map(_ending, rows))
    first = {_ending(row): row for row in reversed(rows)}
    cells = [
        [went, inline(outcome), number, inline(name_of(example)), inline(_said(example))]
        for (went, outcome), number in found.most_common()
        for example in [first[went, outcome]]
    ]
    table = _table(["what is missing", "outcome", "times", "for example", "what was said"], cells)
    about = (
        "These failed on the way. They are not the model's, and count neither for nor against it."
    )
    return f"## Infrastructure\n\n{about}\n\n{table}"


def patterns_text(data: ReportData) -> str:
    """What failures have in common."""
    said = (f"- {inline(one.sentence, _SENTENCE)}" for one in data.patterns)
    return "## Patterns\n\n" + ("\n".join(said) or "None were found.")


def impact_text(data: ReportData) -> str:
    """What it would mean for the score to mend what is unfair."""
    return "\n".join(["## Net impact\n", *(f"- {line}" for line in _impact(data))])


def _facts(data: ReportData) -> Iterator[tuple[str, str]]:
    run = data.run
    yield "Run", inline(run["run_id"])
    yield "Model", inline(run["model"]) + (f" ({SIMULATED})" if run["simulated"] else "")
    yield "Experiment", inline(run["experiment"])
    if run.get("scope") == "filtered":
        part = _counted(run["items"], "item")
        yield "Scope", f"only a part, {part}; not comparable with the leaderboard"
    if run.get("benchmark_version"):
        name = f" ({inline(run['version_name'])})" if run.get("version_name") else ""
        yield "Benchmark version", inline(run["benchmark_version"]) + name
    yield "Opened", f"{minute(data.opened).text} UTC"
    yield "Analysed", f"{minute(data.analysed).text} UTC"
    yield "Judge", inline(run.get("judge") or "nobody yet")
    yield "Analyst", _analysts(data)
    yield "Pass rate", _pass_rate(run)


def _analysts(data: ReportData) -> str:
    known = {row["analyst"]: row["analyst_simulated"] for row in data.wrong if row["analyst"]}
    said = (
        inline(name) + (f" ({SIMULATED})" if simulated else "")
        for name, simulated in sorted(known.items())
    )
    return ", ".join(said) or "nobody yet"


def _pass_rate(run: Row) -> str:
    if run["accuracy"] is None:
        return "nothing is judged"
    share = _percent(run["accuracy"])
    low, high = run.get("accuracy_low"), run.get("accuracy_high")
    if low is not None and high is not None:
        share += f" (95 % interval {_percent(low)} to {_percent(high)})"
    missing = run.get("planned", run["judged"]) - run["judged"]
    unjudged = f"; {missing} of {run['planned']} planned have no score" if missing else ""
    return f"{run['correct']:g} of {run['judged']} right, {share}{unjudged}"


def _impact(data: ReportData) -> Iterator[str]:
    run, unfair = data.run, data.unfair
    actionable = data.classified(Classification.OVERLY_STRICT, Classification.AMBIGUOUS_TASK)
    yield (
        f"Actionable: {len(actionable)} of {_counted(len(data.wrong), 'failure')} (not the "
        "model's fault, and not a known gap already)"
    )
    yield f"Score as it is: {_pass_rate(run)}"
    names = ", ".join(one for one in Classification if one.is_unfair)
    fair = _score(_score_without(run, data.failures, unfair)) if unfair else "the same"
    yield f"Score without what is unfair ({names}; {_counted(len(unfair), 'failure')}): {fair}"
    if left := sum(not row["classification"] for row in data.wrong):
        yield f"Not classified yet: {left}. They count as the model's here."


def _score(score: Score | None) -> str:
    if score is None:
        return "nothing is left to score"
    interval = score.interval
    within = interval and f"; 95 % interval {_percent(interval.low)} to {_percent(interval.high)}"
    hits = f"{round(score.hits, 2):g} of {score.of} {score.what}"
    return f"{_percent(score.share)} ({hits}{within or ''})"


def _ending(row: Row) -> tuple[str, str]:
    """What is missing, and how asking for it ended."""
    outcome = row["outcome"] if row["went"] == "no answer" else row.get("judge_outcome")
    return row["went"], outcome or "unknown"


def _said(row: Row) -> str:
    return str((row["error"] if row["went"] == "no answer" else row["reason"]) or "")


def _table(columns: Sequence[str], cells: Sequence[Sequence[object]]) -> str:
    return tabulate(cells, columns, tablefmt="pipe", disable_numparse=True)


def _score_without(run: Row, failures: Sequence[Row], excluded: Sequence[Row]) -> Score | None:
    """The score if these failures did not count; None if nothing is left."""
    means = list(_means(run, failures, excluded)) if run.get("samples", 1) > 1 else []
    if means:
        left = [mean for mean in means if mean is not None]
        return Score(sum(left), len(left), _OF_ITEMS) if left else None
    of = run["judged"] - len(excluded)
    return Score((run["correct"] or 0) - sum(map(_points, excluded)), of) if of > 0 else None


def _means(run: Row, failures: Sequence[Row], excluded: Sequence[Row]) -> Iterator[float | None]:
    """The mean of each item's replies; nothing at all if not every reply is accounted for."""
    of_items: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in failures:
        of_items[row["suite"], row["item_id"]].append(row)
    in_vain = sum(row["went"] != WRONG for row in failures)
    if run["items"] * run["samples"] - in_vain != run["judged"]:
        return
    yield from [1.0] * (run["items"] - len(of_items))
    left_out = {id(row) for row in excluded}
    for rows in of_items.values():
        wrong = [row for row in rows if row["went"] == WRONG and id(row) not in left_out]
        right = run["samples"] - len(rows)
        counting = right + len(wrong)
        yield (right + sum(map(_points, wrong))) / counting if counting else None


def _points(row: Row) -> float:
    return float(row["score"] or 0)


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
