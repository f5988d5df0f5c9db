"""What calls will use and cost: as those before them, else by the length of what is asked."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, TypeVar

from pydantic import JsonValue

from eval_pipeline.evaluation.budget import TOKENS_PER_REPLY, estimate_usage, with_cost
from eval_pipeline.evaluation.grading import PROMPT, Grader, ModelJudge
from eval_pipeline.evaluation.judge import judging_state
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.evaluation.reuse import ReusableReplies
from eval_pipeline.evaluation.state import PAST_RUNS, JudgeKey, Pending, final_results
from eval_pipeline.evaluation.usage import ENOUGH, Usual, mean, usual
from eval_pipeline.gateways.chat import ChatRequest
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, Journal
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import ExamQuestion, ItemKey
from eval_pipeline.records.model import Model, Prices
from eval_pipeline.records.prediction import Usage
from eval_pipeline.records.run import Run
from eval_pipeline.suites.benchmark import Benchmark, minted, past_version
from eval_pipeline.suites.exam.judge import judge_request

BY_LENGTH = "by the length of the questions"
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Estimate(NamedTuple):
    """What calls will use; the cost is None if nobody knows a price, `by` says what tells it."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    by: str = ""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def plus(self, other: "Estimate") -> "Estimate":
        """Both together; where one cost is unknown, so is their sum."""
        costs = (self.cost_usd, other.cost_usd)
        return Estimate(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            None if None in costs else sum(filter(None, costs)),
            self.by or other.by,
        )


NO_CALLS = Estimate()


class _Row(Protocol[T_co]):
    """What has a length and numbered places, and need not be more of a sequence."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> T_co: ...


def few(everything: _Row[T]) -> list[T]:
    """Some of them from all over, or all if they are not many."""
    step = -(-len(everything) // ENOUGH) or 1
    return [everything[index] for index in range(0, len(everything), step)]


class Part(NamedTuple):
    """Calls in one suite: how many, what some of them may use, and what earlier ones have used."""

    calls: int
    guesses: Sequence[Usage]
    known: Usual


def estimate(parts: Iterable[Part], prices: Prices, noun: str) -> Estimate:
    """What calls will use, as far as it goes by earlier ones in the same suite."""
    pending = [part for part in parts if part.calls]
    total = NO_CALLS
    for part in pending:
        total = total.plus(_of_one_suite(part, prices))
    return total._replace(by=_basis(pending, noun))


def _of_one_suite(part: Part, prices: Prices) -> Estimate:
    calls, guesses, known = part
    asked = mean(guess.input_tokens for guess in guesses) or 0.0
    replied = known.output_tokens
    if replied is None:
        replied = mean(guess.output_tokens for guess in guesses) or 0.0
    each = known.cost_usd
    if each is None:
        likely = (guess.model_copy(update={"output_tokens": round(replied)}) for guess in guesses)
        each = mean(with_cost(usage, prices).cost_usd for usage in likely)
    return Estimate(
        calls,
        round(asked * calls),
        round(replied * calls),
        None if each is None else each * calls,
    )


def _basis(pending: Sequence[Part], noun: str) -> str:
    """What tells it: earlier calls, and the length of what is asked in suites without any."""
    earlier = sum(part.known.calls for part in pending)
    told = [f"by {earlier} earlier {noun}"] if earlier else []
    if any(not part.known.calls for part in pending):
        told.append(BY_LENGTH)
    return " and ".join(told)


class Coming(NamedTuple):
    """The replies that a run will have: those that are taken over, and those that are asked for."""

    run: Run
    carried: ReusableReplies
    left: Pending

    def unjudged(self, by: JudgeKey) -> Iterator[int]:
        """Those that this judge will have to judge."""
        yield from self.carried.replies - self.carried.judged.get(by, set())
        yield from self.left.numbers


@dataclass(frozen=True)
class Judging:
    """Who would judge in a launch, and what earlier verdicts are worth to it."""

    graders: Sequence[Grader]
    reviewer: Model | None
    launch: Launch
    journal: Journal
    benchmark: Benchmark

    def lacks_a_judge(self, run: Run) -> bool:
        """Whether there are questions, and nobody who could judge the answers."""
        coding = self._coding_suites(run)
        asked = any(key.suite not in coding for key in run.plan)
        return asked and not all(grader.judges_answers for grader in self.graders)

    def estimate(self, model: str, coming: Coming | None) -> Estimate:
        """All verdicts on this model's replies, those that are there and those that will be."""
        answers: dict[str, Counter[str]] = defaultdict(Counter)
        code: Counter[str] = Counter()
        for run, more in self._runs(model, coming):
            for left in self._pending(run, more):
                answers[left.grader.judge].update(left.answers)
                code.update(left.code)
        tokens = self._tokens(model, {*code, *(suite for one in answers.values() for suite in one)})
        total = self._reviews(code, tokens)
        for grader in self.graders:
            if grader.model is not None:
                calls = answers[grader.judge]
                total = total.plus(self._verdicts(grader.model, model, calls, tokens))
        return total

    def _tokens(self, model: str, suites: Set[str]) -> Mapping[str, float]:
        """How long the answers are that whoever judges has to read."""
        known = usual(self.journal, PREDICTIONS, model, suites) if suites else {}
        return {
            suite: TOKENS_PER_REPLY if one.output_tokens is None else one.output_tokens
            for suite, one in known.items()
        }

    def _verdicts(
        self, judge: ModelJudge, model: str, calls: Counter[str], tokens: Mapping[str, float]
    ) -> Estimate:
        if not calls:
            return NO_CALLS
        known = usual(self.journal, JUDGED, model, calls, judge.model.id)
        parts = [
            Part(count, [_with_answer(one, tokens[suite]) for one in questions], known[suite])
            for suite, count in calls.items()
            for questions in [self._questions_of(judge, suite)]
        ]
        return estimate(parts, judge.model.prices, "verdicts")

    def _reviews(self, code: Counter[str], tokens: Mapping[str, float]) -> Estimate:
        """Of the AI grader, which is asked about each criterion of a task."""
        if self.reviewer is None or not code or not self._tasks:
            return NO_CALLS
        criteria = sum(len(task.config.review) for task in self._tasks) / len(self._tasks)
        read = [_review(self.reviewer, task) for task in self._tasks]
        parts = [
            Part(
                round(count * criteria),
                [_with_answer(usage, tokens[suite]) for usage in read],
                Usual(),
            )
            for suite, count in code.items()
        ]
        return estimate(parts, self.reviewer.prices, "verdicts")

    def _runs(self, model: str, coming: Coming | None) -> Iterator[tuple[Run, Coming | None]]:
        """The runs that would be judged, and what one of them will have besides."""
        wanted = self.launch.run_for(model)
        opened = False
        for past in self.journal.read(PAST_RUNS, model):
            more = coming if coming and coming.run.run_id == past.run_id else None
            opened = opened or more is not None
            named = not past.is_closed and (wanted is None or past.run_id.startswith(wanted))
            if named and (self._versions is None or past.benchmark_version in self._versions):
                yield next(self.journal.read_file(RUNS, model, past.run_id)), more
        if coming and not opened:
            yield coming.run, coming

    def _pending(self, run: Run, coming: Coming | None) -> Iterator["_Left"]:
        """For each grader how many replies of each suite it has to judge."""
        coding = self._coding_suites(run)
        results = final_results(self.journal, run)
        settled = judging_state(
            self.journal, run, results.keys(), self.launch, by_any=not self._each_judges_all
        )
        if self._is_settled(coming, settled.whole, has_results=bool(results)):
            return
        for grader in self._graders(run, coding):
            by = grader.key
            left = results.keys() - settled.by.get(by, set())
            count = Counter(results[one].suite for one in left)
            if coming is not None:
                count.update(run.plan[one % len(run.plan)].suite for one in coming.unjudged(by))
            code = Counter({suite: number for suite, number in count.items() if suite in coding})
            yield _Left(grader, count - code, code)

    def _is_settled(
        self, coming: Coming | None, whole: Sequence[JudgeKey], *, has_results: bool
    ) -> bool:
        """Whether one judge has judged it as a whole, and nothing comes that it has not."""
        if coming is None or not (coming.carried.replies or coming.left):
            return bool(whole)
        if coming.left or self._each_judges_all:
            return False
        taken = coming.carried
        return any(
            done >= taken.replies and (by in whole or not has_results)
            for by, done in taken.judged.items()
        )

    def _graders(self, run: Run, coding: Set[str]) -> Sequence[Grader]:
        only_code = all(key.suite in coding for key in run.plan)
        return [Grader(self.launch.origin)] if only_code else self.graders

    def _coding_suites(self, run: Run) -> Set[str]:
        version = self.benchmark.version
        if run.benchmark_version != version.benchmark_version:
            version = past_version(self.journal, run.benchmark_version)
        return version.coding_suites

    @property
    def _each_judges_all(self) -> bool:
        return len(self.graders) > 1

    @cached_property
    def _versions(self) -> Set[str] | None:
        """The benchmark versions whose runs are judged again, as the stage has it; None for all."""
        if self.launch.names_runs or not self._each_judges_all:
            return None
        published = {one.benchmark_version for one in minted(self.journal)[-1:]}
        return {self.benchmark.version.benchmark_version} | published

    def _questions_of(self, judge: ModelJudge, suite: str) -> Sequence[Usage]:
        """Those of that suite; of one that there is no longer, any."""
        by_suite = self._questions[judge.model.id]
        return by_suite.get(suite) or [usage for some in by_suite.values() for usage in some]

    @cached_property
    def _questions(self) -> Mapping[str, Mapping[str, Sequence[Usage]]]:
        """For each judge and suite what it has to read with some answers, these left out."""
        coding, keys = self.benchmark.version.coding_suites, defaultdict(list)
        for key in self.benchmark.items:
            if key.suite not in coding:
                keys[key.suite].append(key)
        items = self.benchmark.items
        return {
            judge.model.id: {
                suite: [
                    estimate_usage(_request(judge, item))
                    for item in map(items.__getitem__, few(some))
                    if isinstance(item, ExamQuestion)
                ]
                for suite, some in keys.items()
            }
            for judge in (grader.model for grader in self.graders if grader.model)
        }

    @cached_property
    def _tasks(self) -> Sequence[CodingTask]:
        coding = self.benchmark.version.coding_suites
        keys: list[ItemKey] = few([key for key in self.benchmark.items if key.suite in coding])
        items = map(self.benchmark.items.__getitem__, keys)
        return [item for item in items if isinstance(item, CodingTask)]


class _Left(NamedTuple):
    """What a grader has to judge in a run, suite by suite: answers to questions, and code."""

    grader: Grader
    answers: Counter[str]
    code: Counter[str]


def _review(reviewer: Model, task: CodingTask) -> Usage:
    message: dict[str, JsonValue] = {
        "role": "user",
        "content": PROMPT.read_text("utf-8") + task.question,
    }
    return estimate_usage(ChatRequest(reviewer.request_name, (message,)))


def _request(judge: ModelJudge, item: ExamQuestion) -> ChatRequest:
    return judge_request(
        item,
        "",
        judge.model,
        judge.prompt,
        max_tokens=judge.max_tokens,
        reply_format=judge.formats.to_try()[0],
    )


def _with_answer(usage: Usage, answer_tokens: float) -> Usage:
    """The same for whoever has to read an answer of so many tokens besides."""
    return usage.model_copy(
        update={"input_tokens": round(answer_tokens + (usage.input_tokens or 0))}
    )
