"""The sections of a report that count: what the run is, where and whose the failures are."""

from collections import Counter
from collections.abc import Iterator, Sequence

from tabulate import tabulate

from eval_pipeline.analysis.records import Classification
from eval_pipeline.analysis.report.failing import why_unclassified
from eval_pipeline.analysis.report.material import ANSWER, Material, name_of, step_of
from eval_pipeline.analysis.report.scoring import Score, score_without
from eval_pipeline.analysis.report.texts import counted, inline, percent
from eval_pipeline.coding.records import STEPS
from eval_pipeline.overview import Row
from eval_pipeline.results.tables.format import minute

_ORDER = {step: number for number, step in enumerate((*STEPS, ANSWER))}
_SENTENCE = 1000
SIMULATED = "SIMULATED: its skill is invented, and says nothing about any real model"


def metadata_text(material: Material) -> str:
    """What was measured, by whom, and when."""
    return "\n".join(["## Metadata\n", *(f"- {label}: {text}" for label, text in _facts(material))])


def steps_text(material: Material) -> str:
    """Where answers failed."""
    found = Counter(map(step_of, material.wrong))
    steps = sorted(found, key=lambda step: (_ORDER.get(step, len(_ORDER)), step))
    table = _table(["step", "failures"], [[inline(step), found[step]] for step in steps])
    return f"## Failures by step\n\n{table if steps else 'None.'}"


def classification_text(material: Material) -> str:
    """Whose failures they are, who said so, and which nobody has looked into."""
    total = len(material.wrong)
    found = Counter(row["classification"] for row in material.wrong)
    cells = [[one.value, found[one], percent(found[one] / max(total, 1))] for one in Classification]
    if found[None]:
        cells.append(["not classified", found[None], percent(found[None] / total)])
    parts = ["## Classification", _table(["classification", "failures", "share"], cells)]
    overridden = sum(bool(row["overridden"]) for row in material.wrong)
    by_analyst = total - overridden - sum(not row["classification"] for row in material.wrong)
    parts.append(f"Set by people: {overridden}; by the analyst: {by_analyst}.")
    if total:
        command = f"evals classify {inline(material.run_name)} ITEM CLASSIFICATION --note WHY"
        again = f"evals analyze {inline(material.run_name)}"
        parts.append(f"To disagree: {command}; then {again} renews this report.")
    why = Counter(why_unclassified(row) for row in material.wrong if not row["classification"])
    if why:
        said = (f"- {inline(reason)} ({number})" for reason, number in why.most_common())
        parts += ["Not classified:", "\n".join(said)]
    return "\n\n".join(parts)


def infrastructure_text(material: Material) -> str:
    """What came to nothing on the way, which is nobody's wrong answer."""
    rows = material.infrastructure
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


def patterns_text(material: Material) -> str:
    """What failures have in common."""
    said = (f"- {inline(one.sentence, _SENTENCE)}" for one in material.patterns)
    return "## Patterns\n\n" + ("\n".join(said) or "None were found.")


def impact_text(material: Material) -> str:
    """What it would mean for the score to mend what is unfair."""
    return "\n".join(["## Net impact\n", *(f"- {line}" for line in _impact(material))])


def _facts(material: Material) -> Iterator[tuple[str, str]]:
    run = material.run
    yield "Run", inline(run["run_id"])
    yield "Model", inline(run["model"]) + (f" ({SIMULATED})" if run["simulated"] else "")
    yield "Experiment", inline(run["experiment"])
    if run.get("scope") == "filtered":
        part = counted(run["items"], "item")
        yield "Scope", f"only a part, {part}; not comparable with the leaderboard"
    if run.get("benchmark_version"):
        name = f" ({inline(run['version_name'])})" if run.get("version_name") else ""
        yield "Benchmark version", inline(run["benchmark_version"]) + name
    yield "Opened", f"{minute(material.head.opened).text} UTC"
    yield "Analysed", f"{minute(material.analysed).text} UTC"
    yield "Judge", inline(run.get("judge") or "nobody yet")
    yield "Analyst", _analysts(material)
    yield "Pass rate", _pass_rate(run)
    if material.kept:
        names = ", ".join(map(inline, material.kept))
        yield "Edited by hand, and so left as they are", names


def _analysts(material: Material) -> str:
    known = {row["analyst"]: row["analyst_simulated"] for row in material.wrong if row["analyst"]}
    said = (
        inline(name) + (f" ({SIMULATED})" if simulated else "")
        for name, simulated in sorted(known.items())
    )
    return ", ".join(said) or "nobody yet"


def _pass_rate(run: Row) -> str:
    if run["accuracy"] is None:
        return "nothing is judged"
    share = percent(run["accuracy"])
    low, high = run.get("accuracy_low"), run.get("accuracy_high")
    if low is not None and high is not None:
        share += f" (95 % interval {percent(low)} to {percent(high)})"
    missing = run.get("planned", run["judged"]) - run["judged"]
    unjudged = f"; {missing} of {run['planned']} planned have no score" if missing else ""
    return f"{run['correct']:g} of {run['judged']} right, {share}{unjudged}"


def _impact(material: Material) -> Iterator[str]:
    run, unfair = material.run, material.unfair
    actionable = material.classified(Classification.OVERLY_STRICT, Classification.AMBIGUOUS_TASK)
    yield (
        f"Actionable: {len(actionable)} of {counted(len(material.wrong), 'failure')} (not the "
        "model's fault, and not a known gap already)"
    )
    yield f"Score as it is: {_pass_rate(run)}"
    names = ", ".join(one for one in Classification if one.is_unfair)
    fair = _score(score_without(run, material.failures, unfair)) if unfair else "the same"
    yield f"Score without what is unfair ({names}; {counted(len(unfair), 'failure')}): {fair}"
    if left := sum(not row["classification"] for row in material.wrong):
        yield f"Not classified yet: {left}. They count as the model's here."


def _score(score: Score | None) -> str:
    if score is None:
        return "nothing is left to score"
    interval = score.interval
    within = interval and f"; 95 % interval {percent(interval.low)} to {percent(interval.high)}"
    hits = f"{round(score.hits, 2):g} of {score.of} {score.what}"
    return f"{percent(score.share)} ({hits}{within or ''})"


def _ending(row: Row) -> tuple[str, str]:
    """What is missing, and how asking for it ended."""
    outcome = row["outcome"] if row["went"] == "no answer" else row.get("judge_outcome")
    return row["went"], outcome or "unknown"


def _said(row: Row) -> str:
    return str((row["error"] if row["went"] == "no answer" else row["reason"]) or "")


def _table(columns: Sequence[str], cells: Sequence[Sequence[object]]) -> str:
    return tabulate(cells, columns, tablefmt="pipe", disable_numparse=True)
