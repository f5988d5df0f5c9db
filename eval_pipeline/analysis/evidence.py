"""All that is known of one failure, in parts that somebody who looks into it can read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import duckdb
from pydantic import TypeAdapter

from eval_pipeline.analysis.failures import WRONG, Failure, classified, failures_of_item
from eval_pipeline.evaluation.item import ItemReport, ItemsOf, Section, gather, sections
from eval_pipeline.evaluation.item_prompt import Chosen
from eval_pipeline.journal import Journal
from eval_pipeline.records.coding import CodingTask, Files, Step
from eval_pipeline.records.item import ExamQuestion, Item
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.runs import Row
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import past_items
from eval_pipeline.suites.coding.reply import UnreadableReply, read_files

_STEPS = TypeAdapter(tuple[Step, ...])
ANALYSIS = (
    ("error", "error"),
    ("reasoning", "reasoning"),
    ("gap", "known gap"),
    ("model_snippet", "the model wrote"),
    ("expected_snippet", "expected"),
    ("unexplained_because", "not explained"),
)


class Part(NamedTuple):
    """One text of somebody's, under a name and with a sentence of ours that says what it is."""

    name: str
    about: str
    text: str
    # Of long outputs it is the end that tells most.
    ends: bool = False


@dataclass(frozen=True)
class Evidence:
    """A failure, its item, the reply and the steps; who replied is not part of it."""

    failure: Failure
    item: Item
    answer: str | None
    steps: tuple[Step, ...] = ()

    def parts(self) -> list[Part]:
        """Return all of it, always in the same order."""
        match self.item:
            case ExamQuestion() as question:
                return list(_of_question(question, self))
            case CodingTask() as task:
                return list(_of_code(task, self))


def read_evidence(
    db: duckdb.DuckDBPyConnection,
    run_id: str,
    model: str,
    items: Mapping[Failure, Item],
) -> dict[Failure, Evidence]:
    """Return the evidence of these failures of one run, without those that are gone."""
    given = {
        "run_id": run_id,
        "model": model,
        "prediction_ids": [one.prediction_id for one in items],
        "judges": [one.judge for one in items],
        "judge_versions": [one.judge_version for one in items],
    }
    found = {
        (row["prediction_id"], row["judge"], row["judge_version"]): row
        for row in rows(query(db, "summaries/failure_evidence", given))
    }
    return {
        one: Evidence(one, item, row["answer"], _STEPS.validate_python(row["steps"]))
        for one, item in items.items()
        if (row := found.get(one.verdict))
    }


def _of_question(question: ExamQuestion, evidence: Evidence) -> Iterator[Part]:
    image = "" if question.image is None else " It comes with an image, which is not shown here."
    yield Part("task", f"The question that was asked.{image}", question.question)
    yield Part("reference", f"The reference answer ({question.answer_type}).", question.answer)
    yield Part("rationale", "Why that is the answer, as the data set says.", question.rationale)
    yield _reply(evidence.answer)
    yield _verdict(evidence.failure, "What the judge of the answer says.")


def _of_code(task: CodingTask, evidence: Evidence) -> Iterator[Part]:
    steps = evidence.steps
    yield Part("task", "The task that was set.", task.question)
    yield Part("reference", "The files of the reference answer, which passes.", _shown(task.answer))
    yield Part("grader", "The files of the grader.", _shown(task.grader))
    yield _files(task, evidence.answer)
    yield _verdict(evidence.failure, "What the grading came to.")
    yield Part("steps", "The steps in their order.", "\n".join(map(_line, steps)))
    yield _failed_step(evidence.failure, steps)
    yield _failed_tests(steps)
    none = "" if task.gaps else " There are none, so that nothing of this task is a KNOWN_GAP."
    yield Part("gaps", f"Known faults of the task or its grader (GAPS.txt).{none}", task.gaps)


def _reply(answer: str | None, about: str = "The reply.") -> Part:
    return Part("reply", about if answer else "There is no text in the reply.", answer or "")


def _files(task: CodingTask, answer: str | None) -> Part:
    """The files of a reply; the reply itself where none can be found in it."""
    try:
        files = read_files(answer or "", expected=task.expected_files)
    except UnreadableReply as unreadable:
        return _reply(answer, f"The reply, in which no files can be found. {unreadable}")
    return Part("files", "The files of the answer.", _shown(files))


def _verdict(failure: Failure, about: str) -> Part:
    answer = failure.extracted_answer
    extracted = "" if answer is None else f"\nThe answer that was found in the reply: {answer}"
    return Part("verdict", about, f"{failure.reason}{extracted}")


def _failed_step(failure: Failure, steps: Sequence[Step]) -> Part:
    failed = next((step for step in steps if step.name == failure.failed_step), None)
    if failed is None:
        return Part("failed_step", "No step failed, since none was taken.", "")
    text = f"{_line(failed)}\n{failed.output}".strip()
    return Part("failed_step", "The first step that failed, with its output.", text, ends=True)


def _failed_tests(steps: Sequence[Step]) -> Part:
    failed = [test for step in steps for test in step.tests if not test.passed]
    text = "\n".join(f"{test.name}: {test.message}" for test in failed)
    return Part("failed_tests", f"The tests that failed: {len(failed)}.", text, ends=True)


def _line(step: Step) -> str:
    return f"{step.name}: {step.status}" + (f", {step.reason}" if step.reason else "")


def _shown(files: Files) -> str:
    return "\n\n".join(f"File {path}:\n{text}" for path, text in files.items())


class Case(NamedTuple):
    """One item in a run with its grader and its failures, sample by sample."""

    report: ItemReport
    grader: Files
    failures: list[Row]


def look_into(
    db: duckdb.DuckDBPyConnection,
    settings: Settings,
    journal: Journal,
    chosen: Chosen,
    sample: int | None = None,
    *,
    items: ItemsOf = past_items,
) -> Case:
    """Return everything about the item, of all samples or of one."""
    report = gather(db, settings, journal, chosen, sample, items=items)
    failed = failures_of_item(db, chosen)
    grader = report.item.grader if isinstance(report.item, CodingTask) else {}
    return Case(report, grader, [one for one in failed if sample in (None, one["sample"])])


def debug_document(case: Case) -> Row:
    """Return the case as plain values: as `evals show --json`, with the grader and the analysis."""
    return {**case.report.as_json(), "grader": case.grader, "failures": case.failures}


def debug_sections(case: Case) -> Iterator[Section]:
    """Yield the case as people read it."""
    yield from sections(case.report)
    for path, text in case.grader.items():
        yield Section(f"Grader file {path}", text)
    for failure in case.failures:
        if failure["went"] == WRONG:
            yield _analysis(failure)


def _analysis(failure: Row) -> Section:
    name = f" (sample {failure['sample']})" if failure["samples"] > 1 else ""
    lines = [f"{words}: {failure[column]}" for column, words in ANALYSIS if failure[column]]
    if failure["overridden"]:
        lines.insert(0, f"note: {failure['override_note']}")
    if failure["analyst"]:
        lines.append(f"analyst: {failure['analyst']}")
    return Section(f"Analysis{name}: {classified(failure)}", "\n".join(lines))
