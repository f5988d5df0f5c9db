"""Graders of replies (a judge model, the rules, or both), and the opening of the judge of code."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from typing import Literal, Self

from pydantic import SecretStr

from eval_pipeline.evaluation.budget import estimate_usage, with_cost
from eval_pipeline.evaluation.requests import ModelClient, model_client
from eval_pipeline.evaluation.state import JudgeKey
from eval_pipeline.evaluation.workers import WorkerPool, unless_stopped
from eval_pipeline.gateways.chat import ChatRequest
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.gateways.structured import ParsedReply, ReplyFormats, ask_for, formats_of
from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.base import now
from eval_pipeline.records.coding import CodingTask, Files, TestResult
from eval_pipeline.records.item import ExamQuestion, Item, ItemKey
from eval_pipeline.records.model import Model
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import FREE, Judgement, Prediction, ReplyFormat, Usage
from eval_pipeline.runtime import Halted, in_a_thread
from eval_pipeline.settings.sections import PACKAGE, Coding
from eval_pipeline.settings.settings import CONVEX_KEY, Settings
from eval_pipeline.suites.benchmark import judge_prompt_of
from eval_pipeline.suites.coding.judge import CodeJudge, Reviewed, Reviewer, ReviewError
from eval_pipeline.suites.coding.sandbox.opening import open_sandbox
from eval_pipeline.suites.coding.toolchains.base import Toolchain, ToolchainError
from eval_pipeline.suites.coding.toolchains.convex.backend import Backend
from eval_pipeline.suites.coding.toolchains.convex.toolchain import Convex
from eval_pipeline.suites.coding.toolchains.registry import TOOLCHAINS, home_of, toolchain
from eval_pipeline.suites.exam.judge import (
    SCHEMA,
    VERDICT,
    Verdict,
    fill,
    judge_request,
    own_failing,
    verdict_request,
)
from eval_pipeline.suites.exam.rules.grading import RULES_VERSION, RulesVerdict, grade_by_rules

REVIEW_PROMPT = PACKAGE / "prompts" / "review.txt"
RULES = "rules"
"""What the rules are called where others have the name of a model."""
STEPS = "steps"
"""The same for the steps that code is graded in."""
MEMORY_EACH_MB = 1024
"""About what one grading uses; its limits allow it more than that."""
SHARE_OF_MEMORY = 0.7
_SHARED = {"prediction_id", "run_id", "model", "suite", "item_id", "sample"}


@dataclass(frozen=True)
class ModelJudge:
    """A judge model, and how it is asked."""

    model: Model
    client: ModelClient
    prompt: str
    max_tokens: int | None
    formats: ReplyFormats
    # What a server wrote with escapes is text only once it is read.
    redacted: Callable[[Verdict], Verdict] = lambda verdict: verdict

    @classmethod
    def of(cls, model: Model, prompt: str, settings: Settings, gateways: Gateways) -> Self:
        """Return the judge, asked as the settings say; all answers share its rate limit."""
        judge = settings.judge
        client = model_client(model, settings, gateways, judge.num_workers)
        formats = ReplyFormats(formats_of(model))
        return cls(model, client, prompt, judge.max_tokens, formats, settings.redacted)

    async def ask(
        self, write: Callable[[ReplyFormat], ChatRequest], pool: WorkerPool
    ) -> ParsedReply[Verdict]:
        """Ask for a verdict by the request in each format that it may be asked in."""
        judged = await ask_for(VERDICT, partial(self.client.ask, pool=pool), write, self.formats)
        return replace(judged, value=judged.value and self.redacted(judged.value))

    def guess(self, item: ExamQuestion, answer: str) -> Usage:
        """Guess what a verdict will use by the length of what the judge has to read."""
        return estimate_usage(self.request(item, answer, self.formats.to_try()[0]))

    def request(self, item: ExamQuestion, answer: str, reply_format: ReplyFormat) -> ChatRequest:
        """Write a request; of the prediction the judge sees the answer and nothing else."""
        return judge_request(
            item,
            answer,
            self.model,
            self.prompt,
            max_tokens=self.max_tokens,
            reply_format=reply_format,
        )


@dataclass(frozen=True)
class Grader:
    """Turns a prediction into a judgement: answers by a model or rules, code by its steps."""

    launch: str
    model: ModelJudge | None = None
    rules: bool = False

    @property
    def judges_answers(self) -> bool:
        """Whether it can do more than take code through its steps."""
        return self.model is not None or self.rules

    @property
    def key(self) -> JudgeKey:
        return JudgeKey(self.judge, self.version)

    @cached_property
    def judge(self) -> str:
        """The name under which its verdicts are kept, those on code among them."""
        names = ([RULES] if self.rules else []) + ([self.model.model.id] if self.model else [])
        return "+".join(names) or STEPS

    @cached_property
    def version(self) -> str:
        """Equal for verdicts that were given in the same way; what code needs, its items say."""
        if not self.judges_answers:
            return fingerprint(STEPS)
        if self.model is None:
            return fingerprint(RULES, RULES_VERSION)
        parts = (self.model.prompt, SCHEMA, self.model.max_tokens)
        return fingerprint(*parts, RULES_VERSION) if self.rules else fingerprint(*parts)

    async def grade_code(
        self,
        prediction: Prediction,
        task: CodingTask,
        judge: CodeJudge,
        reviewer: Reviewer | None = None,
    ) -> Judgement:
        """Return the verdict on the files of one prediction, or why there is none."""
        if reason := own_failing(prediction):
            return self._judgement(prediction, outcome=Outcome.OK, score=0.0, reason=reason)
        graded = await judge.grade_reply(task, prediction.answer or "", reviewer)
        return self._judgement(
            prediction,
            outcome=Outcome.SANDBOX_ERROR if graded.score is None else Outcome.OK,
            score=graded.score,
            reason=graded.reason,
            code=graded.code,
            graded_by=STEPS,
            usage=graded.usage,
        )

    async def grade(
        self, prediction: Prediction, item: ExamQuestion, pool: WorkerPool
    ) -> Judgement:
        """Return the verdict on one prediction, or why there is none."""
        if reason := own_failing(prediction):
            return self._judgement(prediction, outcome=Outcome.OK, score=0.0, reason=reason)
        answer = prediction.answer or ""
        if self.rules:
            said = grade_by_rules(item, answer)
            if said.certain or self.model is None:
                await asyncio.sleep(0)  # nothing is waited for, and others want their turn
                return self._judgement(prediction, **_by_rules(said))
        if self.model is None:
            raise ValueError("A grader needs a model, the rules, or both.")
        judged = await self.model.ask(partial(self.model.request, item, answer), pool)
        return self._judgement(prediction, graded_by=self.model.model.id, **_by_model(judged))

    def guess_usd(self, few: Sequence[Prediction], items: Mapping[ItemKey, Item]) -> float | None:
        """Return the average cost of a verdict, judged by a few answers; None if unknown."""
        if self.model is None:
            return 0.0
        prices = self.model.model.prices
        if not prices.known or not few:
            return None
        asked = [(items[one.key], one.answer or "") for one in few]
        pairs = [(item, text) for item, text in asked if isinstance(item, ExamQuestion)]
        unsure = [pair for pair in pairs if not self.rules or not grade_by_rules(*pair).certain]
        guesses = [with_cost(self.model.guess(*pair), prices) for pair in unsure]
        return sum(guess.cost_usd or 0.0 for guess in guesses) / len(few)

    def _judgement(self, prediction: Prediction, **result: object) -> Judgement:
        return Judgement.model_validate(
            {
                **prediction.model_dump(include=_SHARED),
                "judge": self.judge,
                "judge_version": self.version,
                # The same hash as in benchmark versions; None if the grader asks no model.
                "prompt_hash": self.model and fingerprint(self.model.prompt),
                "launch": self.launch,
                "finished_at": now(),
                **result,
            }
        )


def graders_of(
    judges: Sequence[Model], settings: Settings, gateways: Gateways, launch: str
) -> list[Grader]:
    """Return one grader per judge, each asked through its own gateway and at its own pace."""
    rules = settings.judge.rules
    if rules == "only":
        return [Grader(launch, rules=True)]
    if not judges:
        return [Grader(launch)]
    prompt = judge_prompt_of(settings)
    return [
        Grader(launch, ModelJudge.of(judge, prompt, settings, gateways), rules=rules == "first")
        for judge in judges
    ]


def _by_rules(said: RulesVerdict) -> dict[str, object]:
    """What the rules are not certain of is not judged, whatever they lean to."""
    decided = said.certain and said.correct is not None
    return {
        "outcome": Outcome.OK if decided else Outcome.UNDECIDED,
        "score": float(bool(said.correct)) if decided else None,
        "reason": said.reason,
        "extracted_answer": said.extracted_answer,
        "confidence": None if said.confidence is None else said.confidence / 100,
        "graded_by": RULES,
        "usage": FREE,
    }


def _by_model(judged: ParsedReply[Verdict]) -> dict[str, object]:
    verdict, reply = judged.value, judged.reply
    result: dict[str, object] = {
        "outcome": judged.outcome,
        "score": None,
        "reason": judged.error,
        "reply_format": judged.reply_format,
        "attempts": judged.attempts,
        "usage": judged.usage,
    }
    if reply is not None:
        result |= {"raw_reply": reply.text or reply.refusal, "latency_s": reply.latency_s}
    if verdict is not None:
        result |= {
            "score": float(verdict.correct),
            "reason": verdict.reasoning,
            "extracted_answer": verdict.extracted_answer,
            "confidence": None if verdict.confidence is None else verdict.confidence / 100,
        }
    return result


@dataclass(frozen=True)
class CodeReviewer:
    """A model that reviews code, asked and paid for as part of the pool's work."""

    judge: ModelJudge
    pool: WorkerPool

    @property
    def name(self) -> str:
        """Who it is and how it is asked."""
        return f"{self.judge.model.id}-{fingerprint(self.judge.prompt, self.judge.max_tokens)}"

    async def review(self, task: CodingTask, files: Files) -> Reviewed:
        """Return one result per criterion; what was paid for before one failed is not lost."""
        who, tests = f"The AI grader {self.judge.model.id}", list[TestResult]()
        usages: list[Usage] = []
        for criterion in task.config.review:
            try:
                judged = await self.judge.ask(
                    partial(self._request, task, files, criterion), self.pool
                )
            except Halted:
                if not usages:
                    raise
                used = reduce(Usage.plus, usages)
                raise ReviewError(f"{who} was stopped before its end.", used) from None
            usages.append(judged.usage)
            if judged.value is None:
                raise ReviewError(f"{who}: {judged.error}", reduce(Usage.plus, usages))
            said = judged.value
            name = f"review: {criterion}"
            tests.append(TestResult(name=name, passed=said.correct, message=said.reasoning))
        return Reviewed(tuple(tests), reduce(Usage.plus, usages, FREE))

    def _request(
        self, task: CodingTask, files: Files, criterion: str, reply_format: ReplyFormat
    ) -> ChatRequest:
        """Write one criterion at a time, so that each has a verdict and a reason of its own."""
        shown = "\n\n".join(f"File {path}:\n{text}" for path, text in files.items())
        judge, values = self.judge, {"task": task.question, "criterion": criterion, "files": shown}
        filled = fill(judge.prompt, values)
        return verdict_request(judge.model, judge.prompt, filled, judge.max_tokens, reply_format)


@dataclass
class CodeGraderFactory:
    """Opens the sandbox once, and only if there is code to grade."""

    settings: Settings
    fresh: bool = False
    _judge: CodeJudge | None = None
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def open(self, items: Iterable[Item]) -> CodeJudge:
        """Return the judge of code; raise if a sandbox or a toolchain is missing."""
        coding, data = self.settings.coding, self.settings.data
        async with unless_stopped(), self._opening:
            needed = {item.toolchain for item in items if isinstance(item, CodingTask)}
            for tools in map(toolchain, sorted(needed)):
                if not tools.is_prepared(home_of(tools, data)):
                    raise ToolchainError(
                        f"The toolchain {tools.name} is not prepared, so nothing was graded: "
                        f"evals toolchain prepare {tools.name}"
                    )
            if self._judge is None:
                # Isolation is "none" only if this launch has explicitly asked for it.
                unsafe = coding.isolation == "none"
                sandbox = await in_a_thread(partial(open_sandbox, coding.isolation, unsafe=unsafe))
                known = with_backend(coding, self.settings.keys.get(CONVEX_KEY))
                self._judge = CodeJudge(
                    sandbox, data, Slots(num_workers(coding)), self.fresh, known
                )
            return self._judge


def with_backend(settings: Coding, key: SecretStr | None) -> Mapping[str, Toolchain]:
    """Return every toolchain; whole Convex projects go to a backend, if one is named."""
    if settings.convex_url is None:
        return TOOLCHAINS
    if key is None:
        raise ToolchainError(
            f"coding.convex_url names a Convex backend: its key belongs into .env, as {CONVEX_KEY}."
        )
    backend = Backend.at(settings.convex_url, settings.convex_site_url, key)
    return {**TOOLCHAINS, "convex": Convex(server=backend)}


class Slots(asyncio.Semaphore):
    """Slots that are not given any more once the work is to stop."""

    async def acquire(self) -> Literal[True]:
        async with unless_stopped():
            return await super().acquire()


def num_workers(settings: Coding) -> int:
    """Return the setting, else as many as there are cores, if there is memory for them."""
    if settings.num_workers is not None:
        return settings.num_workers
    there_mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20
    memory_mb = settings.memory_mb or int(there_mb * SHARE_OF_MEMORY)
    return max(1, min(len(os.sched_getaffinity(0)), memory_mb // MEMORY_EACH_MB))
