"""An AI grader for code: asked about each criterion of a task, its verdict is one more test."""

from dataclasses import dataclass
from functools import partial, reduce

from eval_pipeline.coding.judge import Reviewed, ReviewError
from eval_pipeline.coding.records import CodingTask, Files, TestResult
from eval_pipeline.exam.judge import ReplyFormats, fill, formats_of, judge_answer, verdict_request
from eval_pipeline.fingerprints import fingerprint
from eval_pipeline.gateways.chat import ChatRequest
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.options import PACKAGE
from eval_pipeline.records import FREE, Model, ReplyFormat, Usage
from eval_pipeline.runtime import Halted
from eval_pipeline.settings import Settings
from eval_pipeline.stages.asking import Asking, how_to_ask
from eval_pipeline.stages.workers import Shift

PROMPT = PACKAGE / "prompts" / "review.txt"


@dataclass(frozen=True)
class Reviewing:
    """A model that reviews code, and how it is asked."""

    model: Model
    asking: Asking
    prompt: str
    max_tokens: int | None
    formats: ReplyFormats

    @classmethod
    def by(cls, model: Model, settings: Settings, gateways: Gateways) -> "Reviewing":
        judge = settings.judge
        asking = how_to_ask(model, settings, gateways, judge.num_workers)
        formats = ReplyFormats(formats_of(model))
        return cls(model, asking, PROMPT.read_text("utf-8").strip(), judge.max_tokens, formats)

    def within(self, shift: Shift) -> "ShiftReviewer":
        """The same, asked and paid for as part of a shift."""
        return ShiftReviewer(self, shift)

    def request(
        self, task: CodingTask, files: Files, criterion: str, reply_format: ReplyFormat
    ) -> ChatRequest:
        """One criterion at a time, so that each has a verdict and a reason of its own."""
        shown = "\n\n".join(f"File {path}:\n{text}" for path, text in files.items())
        values = {"task": task.question, "criterion": criterion, "files": shown}
        filled = fill(self.prompt, values)
        return verdict_request(self.model, self.prompt, filled, self.max_tokens, reply_format)


@dataclass(frozen=True)
class ShiftReviewer:
    """The reviewer of one shift."""

    reviewing: Reviewing
    shift: Shift

    @property
    def name(self) -> str:
        """Who it is and how it is asked."""
        parts = (self.reviewing.prompt, self.reviewing.max_tokens)
        return f"{self.reviewing.model.id}-{fingerprint(*parts)}"

    async def review(self, task: CodingTask, files: Files) -> Reviewed:
        """One result per criterion; what was paid for before one of them failed is not lost."""
        tests: list[TestResult] = []
        usages: list[Usage] = []
        for criterion in task.config.review:
            write = partial(self.reviewing.request, task, files, criterion)
            ask = partial(self.reviewing.asking.ask, shift=self.shift)
            try:
                judged = await judge_answer(ask, write, self.reviewing.formats)
            except Halted:
                if not usages:
                    raise
                told = f"The AI grader {self.reviewing.model.id} was stopped before its end."
                raise ReviewError(told, reduce(Usage.plus, usages)) from None
            usages.append(judged.usage)
            if judged.verdict is None:
                told = f"The AI grader {self.reviewing.model.id}: {judged.error}"
                raise ReviewError(told, reduce(Usage.plus, usages))
            said = judged.verdict
            name = f"review: {criterion}"
            tests.append(TestResult(name=name, passed=said.correct, message=said.reasoning))
        return Reviewed(tuple(tests), reduce(Usage.plus, usages, FREE))
