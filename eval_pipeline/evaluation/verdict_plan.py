"""Estimates of what verdicts on a model's replies will use, including its future replies."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from statistics import fmean
from typing import NamedTuple

from eval_pipeline.evaluation.budget import TOKENS_PER_REPLY, estimate_usage
from eval_pipeline.evaluation.estimate import (
    NO_CALLS,
    AverageUsage,
    Estimate,
    Part,
    average_usage,
    estimate,
    spread,
)
from eval_pipeline.evaluation.grading import REVIEW_PROMPT, Grader, ModelJudge
from eval_pipeline.evaluation.judge import judging_state, runs_to_judge
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.evaluation.reuse import NOTHING_REUSED, ReusableReplies
from eval_pipeline.evaluation.state import JudgeKey, Pending, final_results, read_run
from eval_pipeline.gateways.chat import ChatRequest
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, Journal
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import ExamQuestion, Item, ItemKey
from eval_pipeline.records.model import Model
from eval_pipeline.records.prediction import Usage
from eval_pipeline.records.run import Run
from eval_pipeline.suites.benchmark import Benchmark, minted, past_version


class FutureReplies(NamedTuple):
    """The replies that a run will have besides its own: reused ones, and those to be asked for."""

    run: Run
    reused: ReusableReplies = NOTHING_REUSED
    left: Pending = Pending((), ())

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
        suites = {*code, *chain.from_iterable(answers.values())}
        known = average_usage(self.journal, PREDICTIONS, model, suites)
        # The average length of the answers that a judge has to read, by suite.
        tokens = {
            suite: TOKENS_PER_REPLY if one.output_tokens is None else one.output_tokens
            for suite, one in known.items()
        }
        judges = ((grader.model, answers[grader.judge]) for grader in self.graders)
        verdicts = (self._verdicts(judge, model, some, tokens) for judge, some in judges if judge)
        return sum(verdicts, self._reviews(code, tokens))

    def _runs(self, model: str, future: FutureReplies | None) -> Iterator[FutureReplies]:
        """Yield the runs that would be judged, each with what it will have besides."""
        if future is not None and not self.journal.exists(RUNS, model, future.run.run_id):
            yield future
        for past in runs_to_judge(model, self.launch, self.journal):
            if self._versions is None or past.benchmark_version in self._versions:
                if future is not None and future.run.run_id == past.run_id:
                    yield future
                else:
                    yield FutureReplies(read_run(self.journal, model, past.run_id))

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
            reused = future.reused.replies - future.reused.judged.get(grader.key, set())
            coming = chain(reused, future.left.numbers)
            count.update(run.plan[n % len(run.plan)].suite for n in coming)
            for suite, number in count.items():
                (code if suite in coding else answers[grader.judge])[suite] += number

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
        items = chain.from_iterable(self._some_items.values())
        tasks = [item for item in items if isinstance(item, CodingTask)]
        if self.reviewer is None or not code or not tasks:
            return NO_CALLS
        criteria = fmean(len(task.config.review) for task in tasks)
        prompt = REVIEW_PROMPT.read_text("utf-8")
        read = [estimate_usage(_request(self.reviewer, prompt + task.question)) for task in tasks]
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
    def _some_items(self) -> Mapping[str, Sequence[Item]]:
        """Some of the items of each suite."""
        keys: dict[str, list[ItemKey]] = defaultdict(list)
        for key in self.benchmark.items:
            keys[key.suite].append(key)
        items = self.benchmark.items
        return {suite: [items[key] for key in spread(some)] for suite, some in keys.items()}

    @cached_property
    def _guesses(self) -> Mapping[str, Mapping[str, Sequence[Usage]]]:
        """By judge and suite, what verdicts on some questions use, without the answers."""
        return {
            judge.model.id: {
                suite: [judge.guess(item, "") for item in some if isinstance(item, ExamQuestion)]
                for suite, some in self._some_items.items()
            }
            for judge in (grader.model for grader in self.graders if grader.model)
        }


def _request(model: Model, content: str) -> ChatRequest:
    return ChatRequest(model.request_name, ({"role": "user", "content": content},))


def _with_answer(usages: Iterable[Usage], tokens: float) -> list[Usage]:
    """Return the same for a judge that also reads an answer of that many tokens."""
    return [
        one.model_copy(update={"input_tokens": round(tokens + (one.input_tokens or 0))})
        for one in usages
    ]
