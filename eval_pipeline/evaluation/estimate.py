"""Estimates of what calls will use and cost: by earlier ones, else by the length of the items."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from pydantic import JsonValue

from eval_pipeline.evaluation.budget import TOKENS_PER_REPLY, estimate_usage, with_cost
from eval_pipeline.evaluation.grading import PROMPT, Grader, ModelJudge
from eval_pipeline.evaluation.judge import judging_state
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.evaluation.reuse import NOTHING_REUSED, ReusableReplies
from eval_pipeline.evaluation.state import PAST_RUNS, JudgeKey, Pending, final_results, read_run
from eval_pipeline.evaluation.usage import ENOUGH, AverageUsage, average_usage, mean
from eval_pipeline.gateways.chat import ChatRequest
from eval_pipeline.journal import JUDGED, PREDICTIONS, Journal
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import ExamQuestion, Item, ItemKey
from eval_pipeline.records.model import Model, Prices
from eval_pipeline.records.prediction import Usage
from eval_pipeline.records.run import Run
from eval_pipeline.suites.benchmark import Benchmark, minted, past_version
from eval_pipeline.suites.exam.judge import judge_request

BY_LENGTH = "by the length of the questions"


@dataclass(frozen=True)
class Estimate:
    """The expected use of calls; the cost is None if a price is unknown, `by` names the basis."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    by: str = ""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Estimate") -> "Estimate":
        """Return the sum of both; where one cost is unknown, so is their sum."""
        costs = (self.cost_usd, other.cost_usd)
        return Estimate(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            None if None in costs else sum(filter(None, costs)),
            self.by or other.by,
        )


NO_CALLS = Estimate()


def sample_places(count: int) -> range:
    """Return evenly spread places, or all places if the count is small."""
    return range(0, count, -(-count // ENOUGH) or 1)


class Part(NamedTuple):
    """Calls in one suite: how many, what some of them may use, and what earlier ones have used."""

    calls: int
    guesses: Sequence[Usage]
    known: AverageUsage


def estimate(parts: Iterable[Part], prices: Prices, noun: str) -> Estimate:
    """Return what calls will use, as far as possible by earlier ones in the same suite."""
    pending = [part for part in parts if part.calls]
    earlier = sum(part.known.calls for part in pending)
    basis = [f"by {earlier} earlier {noun}"] if earlier else []
    if any(not part.known.calls for part in pending):
        basis.append(BY_LENGTH)
    start = Estimate(by=" and ".join(basis))
    return sum((_estimate_suite(part, prices) for part in pending), start)


def _estimate_suite(part: Part, prices: Prices) -> Estimate:
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


class FutureReplies(NamedTuple):
    """The replies that a run will have besides its own: reused ones, and those to be asked for."""

    run: Run
    reused: ReusableReplies = NOTHING_REUSED
    left: Pending = Pending((), ())

    def unjudged(self, by: JudgeKey) -> Iterator[int]:
        """Yield those that this judge will have to judge."""
        yield from self.reused.replies - self.reused.judged.get(by, set())
        yield from self.left.numbers

    def is_settled(self, whole: Sequence[JudgeKey], *, has_results: bool) -> bool:
        """Return whether a judge has judged the run as a whole, and all that it will reuse."""
        return not self.left and any(
            self.reused.judged.get(by, set()) >= self.reused.replies
            for by in (whole if has_results else self.reused.judged)
        )


@dataclass(frozen=True)
class Judging:
    """The judges of a launch, and what verdicts on a model's replies will use."""

    graders: Sequence[Grader]
    reviewer: Model | None
    launch: Launch
    journal: Journal
    benchmark: Benchmark

    def lacks_a_judge(self, run: Run) -> bool:
        """Return whether there are questions, and no judge for the answers."""
        coding = self._coding_suites(run)
        asked = any(key.suite not in coding for key in run.plan)
        return asked and not all(grader.judges_answers for grader in self.graders)

    def estimate(self, model: str, future: FutureReplies | None) -> Estimate:
        """Return what all verdicts on this model's replies will use, including `future` ones."""
        answers: dict[str, Counter[str]] = defaultdict(Counter)
        code: Counter[str] = Counter()
        for run in self._runs(model, future):
            self._count_pending(run, answers, code)
        tokens = self._answer_tokens(model, {*code, *chain.from_iterable(answers.values())})
        judges = ((grader.model, answers[grader.judge]) for grader in self.graders)
        verdicts = (self._verdicts(judge, model, some, tokens) for judge, some in judges if judge)
        return sum(verdicts, self._reviews(code, tokens))

    def _runs(self, model: str, future: FutureReplies | None) -> Iterator[FutureReplies]:
        """Yield the runs that would be judged, each with what it will have besides."""
        wanted, is_open = self.launch.run_for(model), False
        for past in self.journal.read(PAST_RUNS, model):
            is_future = future is not None and future.run.run_id == past.run_id
            is_open = is_open or is_future
            if past.is_closed or (wanted is not None and not past.run_id.startswith(wanted)):
                continue
            if past.is_imported and not self.launch.names_runs:
                continue
            if self._versions is None or past.benchmark_version in self._versions:
                run = read_run(self.journal, model, past.run_id)
                yield future if future and is_future else FutureReplies(run)
        if future is not None and not is_open:
            yield future

    def _count_pending(
        self, future: FutureReplies, answers: Mapping[str, Counter[str]], code: Counter[str]
    ) -> None:
        """Count the replies of a run that are to be judged: by judge and suite, and code."""
        run, coding = future.run, self._coding_suites(future.run)
        results, by_any = final_results(self.journal, run), len(self.graders) == 1
        state = judging_state(self.journal, run, results.keys(), self.launch, by_any=by_any)
        if by_any and future.is_settled(state.whole, has_results=bool(results)):
            return
        only_code = all(key.suite in coding for key in run.plan)
        for grader in [Grader(self.launch.origin)] if only_code else self.graders:
            left = results.keys() - state.by.get(grader.key, set())
            count = Counter(results[one].suite for one in left)
            count.update(run.plan[n % len(run.plan)].suite for n in future.unjudged(grader.key))
            for suite, number in count.items():
                (code if suite in coding else answers[grader.judge])[suite] += number

    def _answer_tokens(self, model: str, suites: Set[str]) -> Mapping[str, float]:
        """Return how long the answers are that a judge has to read."""
        known = average_usage(self.journal, PREDICTIONS, model, suites) if suites else {}
        return {
            suite: TOKENS_PER_REPLY if one.output_tokens is None else one.output_tokens
            for suite, one in known.items()
        }

    def _verdicts(
        self, judge: ModelJudge, model: str, calls: Counter[str], tokens: Mapping[str, float]
    ) -> Estimate:
        if not calls:
            return NO_CALLS
        known = average_usage(self.journal, JUDGED, model, calls, judge.model.id)
        guesses = self._guesses[judge.model.id]
        anything = list(chain.from_iterable(guesses.values()))  # for suites that are gone
        parts = [
            Part(count, _with_answer(guesses.get(suite) or anything, tokens[suite]), known[suite])
            for suite, count in calls.items()
        ]
        return estimate(parts, judge.model.prices, "verdicts")

    def _reviews(self, code: Counter[str], tokens: Mapping[str, float]) -> Estimate:
        """Return what the AI grader uses, which is asked about each criterion of a task."""
        if self.reviewer is None or not code or not self._tasks:
            return NO_CALLS
        criteria = sum(len(task.config.review) for task in self._tasks) / len(self._tasks)
        read = [_review(self.reviewer, task) for task in self._tasks]
        parts = [
            Part(round(count * criteria), _with_answer(read, tokens[suite]), AverageUsage())
            for suite, count in code.items()
        ]
        return estimate(parts, self.reviewer.prices, "verdicts")

    def _coding_suites(self, run: Run) -> Set[str]:
        version = self.benchmark.version
        if run.benchmark_version != version.benchmark_version:
            version = past_version(self.journal, run.benchmark_version)
        return version.coding_suites

    @cached_property
    def _versions(self) -> Set[str] | None:
        """The benchmark versions whose runs several judges judge again; None for all."""
        if self.launch.names_runs or len(self.graders) <= 1:
            return None
        published = {one.benchmark_version for one in minted(self.journal)[-1:]}
        return {self.benchmark.version.benchmark_version} | published

    @cached_property
    def _guesses(self) -> Mapping[str, Mapping[str, Sequence[Usage]]]:
        """By judge and suite, what verdicts on some questions use, without the answers."""
        keys: dict[str, list[ItemKey]] = defaultdict(list)
        for key in self.benchmark.items:
            if key.suite not in self.benchmark.version.coding_suites:
                keys[key.suite].append(key)
        return {
            judge.model.id: {
                suite: [
                    estimate_usage(_request(judge, item))
                    for item in self._some(some)
                    if isinstance(item, ExamQuestion)
                ]
                for suite, some in keys.items()
            }
            for judge in (grader.model for grader in self.graders if grader.model)
        }

    @cached_property
    def _tasks(self) -> Sequence[CodingTask]:
        coding = self.benchmark.version.coding_suites
        items = self._some([key for key in self.benchmark.items if key.suite in coding])
        return [item for item in items if isinstance(item, CodingTask)]

    def _some(self, keys: Sequence[ItemKey]) -> list[Item]:
        return [self.benchmark.items[keys[place]] for place in sample_places(len(keys))]


def _review(reviewer: Model, task: CodingTask) -> Usage:
    message: dict[str, JsonValue] = {
        "role": "user",
        "content": PROMPT.read_text("utf-8") + task.question,
    }
    return estimate_usage(ChatRequest(reviewer.request_name, (message,)))


def _request(judge: ModelJudge, item: ExamQuestion) -> ChatRequest:
    reply_format = judge.formats.to_try()[0]
    limit = judge.max_tokens
    return judge_request(
        item, "", judge.model, judge.prompt, max_tokens=limit, reply_format=reply_format
    )


def _with_answer(usages: Iterable[Usage], tokens: float) -> list[Usage]:
    """Return the same for a judge that also reads an answer of that many tokens."""
    return [
        one.model_copy(update={"input_tokens": round(tokens + (one.input_tokens or 0))})
        for one in usages
    ]
