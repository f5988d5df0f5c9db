"""The nouns of coding evals: a task with all that grades it, its steps, and what came of them."""

from typing import ClassVar, Literal

from pydantic import Field

from eval_pipeline.records.base import Record

Files = dict[str, str]
"""Text files by their path, which is relative and has forward slashes."""

StepName = Literal["filesystem", "install", "deploy", "typecheck", "lint", "tests"]
STEPS: tuple[StepName, ...] = ("filesystem", "install", "deploy", "typecheck", "lint", "tests")
"""Every step, in the order in which they are taken."""
STOPPING: tuple[StepName, ...] = ("filesystem", "install", "deploy")
"""Without these nothing else can be graded; other steps fail and grading goes on."""

Verdict = Literal["oracle", "tamper_evident"]
"""Who says that tests passed: a process that candidate code never runs in, or one it shares."""

Isolation = Literal["bwrap", "container", "none"]


class TaskLimits(Record):
    """What one step may use; None leaves it to the toolchain."""

    seconds: float | None = Field(default=None, gt=0, le=3600)
    memory_mb: int | None = Field(default=None, ge=64)


class TaskConfig(Record):
    """What eval.toml says of a task; everything in it is optional."""

    toolchain: str | None = None
    steps: tuple[StepName, ...] | None = None
    expected_files: tuple[str, ...] = ()
    # Module -> its public names, where all that goes in and out of them is plain data.
    interface: dict[str, tuple[str, ...]] = {}
    verdict: Verdict | None = None
    limits: dict[StepName, TaskLimits] = {}
    # What an AI grader is asked about the files, one test for each.
    review: tuple[str, ...] = ()


class CodingTask(Record):
    """One coding task: what is asked, the reference answer, and all that grades an answer."""

    kind: Literal["coding"] = "coding"
    suite: str
    id: str
    category: str
    question: str
    image: None = None
    toolchain: str
    config: TaskConfig
    answer: Files
    grader: Files
    # Answers that must fail, by name; they decide nothing about a pass.
    wrong: dict[str, Files] = {}
    gaps: str = ""
    cluster: str | None = None
    # Of all that decides a pass, the toolchain included: see `coding.dataset`.
    grader_version: str

    @property
    def verdict(self) -> Verdict:
        """By whom its tests are told: from outside, wherever plain data is all that crosses."""
        outside: Verdict = "oracle" if self.config.interface else "tamper_evident"
        return self.config.verdict or outside

    @property
    def is_project(self) -> bool:
        """Whether answers are whole projects of any files, as in a checkout of convex-evals."""
        return any(path.startswith("evals/") for path in self.grader)

    @property
    def expected_files(self) -> tuple[str, ...]:
        """What an answer has to bring: as much as the reference, unless the task says otherwise."""
        if self.is_project:
            return self.config.expected_files
        return self.config.expected_files or tuple(self.answer)


class TestResult(Record):
    """One test of the tests step."""

    __test__: ClassVar[bool] = False  # it is no class of tests

    name: str
    passed: bool
    message: str = ""


class Step(Record):
    """What one step came to; an `error` is nobody's answer's fault and is never scored."""

    name: StepName
    status: Literal["passed", "failed", "skipped", "error"]
    reason: str = ""
    output: str = ""
    seconds: float = 0.0
    tests: tuple[TestResult, ...] = ()


class GradedCode(Record):
    """How an answer in files was graded."""

    steps: tuple[Step, ...]
    toolchain: str
    isolation: Isolation
    verdict: Verdict
    backend: str | None = None
    grader_version: str
    answer_hash: str

    @property
    def failed_step(self) -> Step | None:
        """The first step that was not perfect."""
        return next((step for step in self.steps if step.status in ("failed", "error")), None)

    @property
    def tests(self) -> tuple[TestResult, ...]:
        return tuple(test for step in self.steps for test in step.tests)

    def with_last_step(self, step: Step) -> "GradedCode":
        """The same with another last step."""
        return self.model_copy(update={"steps": (*self.steps[:-1], step)})
