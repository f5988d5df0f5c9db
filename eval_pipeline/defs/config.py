"""What can be set for one launch, in the UI's launchpad or on the command line."""

from typing import Any, Self

import dagster as dg
from pydantic import Field

from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.records.run import Mode
from eval_pipeline.settings.sections import Plan
from eval_pipeline.settings.settings import Settings

SELECTION = ("models", "exclude_models", "exclude_providers")
PLAN = ("text_only", "max_samples", "samples", "suites", "categories", "test_filter")
WORKERS = ("num_workers", "max_concurrent_models")
BUDGET = {
    "usd_per_run": "budget_usd",
    "usd_per_model": "budget_usd_per_model",
    "usd_per_day": "budget_usd_per_day",
}
"""The fields by the settings that they are about."""


def launch_of(run: dg.DagsterRun) -> str:
    """Return under which run it journals; one that is tried again goes on as the first."""
    return run.root_run_id or run.run_id


class LaunchChoices(dg.Config):
    """Fields that may be left empty."""

    def given(self, *fields: str, **fields_by_setting: str) -> dict[str, Any]:
        """Return what this launch says of these settings, without what it leaves empty."""
        by_setting = {**dict(zip(fields, fields, strict=True)), **fields_by_setting}
        said = {setting: getattr(self, field) for setting, field in by_setting.items()}
        return {setting: value for setting, value in said.items() if value is not None}


class CatalogConfig(LaunchChoices):
    """Which models are partitions from now on; a field left empty keeps its value."""

    models: list[str] | None = Field(
        default=None, description="Patterns of models to select; the README explains them."
    )
    exclude_models: list[str] | None = Field(
        default=None, description="Patterns of models to leave out."
    )
    exclude_providers: list[str] | None = Field(
        default=None, description="Providers whose models are left out."
    )
    text_only: bool | None = Field(default=None, description="Only models that read text.")

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """What the settings say, for the launchpad to begin with."""
        chosen = settings.selection.model_dump(mode="json", include={*SELECTION})
        return cls(**chosen, text_only=settings.plan.text_only)

    def apply(self, settings: Settings) -> Settings:
        """The settings with what this launch says instead."""
        said = {"selection": self.given(*SELECTION), "plan": self.given("text_only")}
        return settings.overridden(said)


class LaunchConfig(LaunchChoices):
    """What both stages have in common; a field left empty keeps its value from the settings."""

    mode: Mode = Mode.AUTO
    run_id: str | None = Field(
        default=None, description="The run to continue (the first characters are enough)."
    )
    runs: dict[str, str] = Field(
        default={}, description="The same for each of several models: model to run."
    )
    budget_usd: float | None = Field(
        default=None,
        description="Stop asking when the run has cost so much, over all models, judging and "
        "earlier launches included.",
    )
    budget_usd_per_model: float | None = Field(
        default=None, description="The same for each model of the run."
    )
    budget_usd_per_day: float | None = Field(
        default=None, description="The same for everything since midnight UTC."
    )
    num_workers: int | None = Field(default=None, description="Requests at a time.")

    def launch(self, run: dg.DagsterRun) -> Launch:
        """Under which run, and what becomes of earlier work."""
        again = run.root_run_id
        return Launch(run.run_id, self.mode, self.run_id, retry_of=again, continue_runs=self.runs)

    @property
    def names_runs(self) -> bool:
        """Whether it says which runs are to be continued."""
        return self.run_id is not None or bool(self.runs)


class PredictionsConfig(LaunchConfig):
    """How models are asked in this launch."""

    mode: Mode = Field(
        default=Mode.AUTO,
        description="AUTO continues the latest run while something in it is missing, failed or not "
        "judged, else opens a new one; RESUME asks what is missing; FIX also what failed; FRESH "
        "opens a new run.",
    )
    experiment: str | None = Field(
        default=None, description="A named variation of how models are asked."
    )
    text_only: bool | None = Field(default=None, description="Leave out questions with an image.")
    max_samples: int | None = Field(
        default=None, description="Only the first so many items of each suite."
    )
    samples: int | None = Field(
        default=None,
        description="How often each item is asked; a run with more samples takes over those that "
        "a run with fewer has.",
    )
    suites: list[str] | None = Field(default=None, description="Only items of these suites.")
    categories: list[str] | None = Field(default=None, description="Only these categories.")
    test_filter: str | None = Field(
        default=None, description="A regular expression that suite/category/id must match."
    )
    only_failed: bool = Field(
        default=False,
        description="Ask anew, in a new run, what was wrong or had no result in the latest one.",
    )
    max_concurrent_models: int | None = Field(default=None, description="Models at a time.")

    def launch(self, run: dg.DagsterRun) -> Launch:
        """Under which run, and what becomes of earlier work."""
        launch = super().launch(run)
        return launch.for_failed() if self.only_failed else launch

    @classmethod
    def of(cls, settings: Settings, mode: Mode = Mode.AUTO) -> Self:
        """What the settings say, for the launchpad to begin with."""
        return cls(
            mode=mode,
            experiment=settings.experiment,
            **settings.plan.model_dump(mode="json", include={*PLAN}),
            **settings.concurrency.model_dump(include={*WORKERS}),
            **_budgets(settings),
        )

    def apply(self, settings: Settings) -> Settings:
        """The settings with what this launch says instead; a run that goes on has its own plan."""
        return settings.overridden(
            {
                **self.given("experiment"),
                "plan": Plan().model_dump() if self.names_runs else self.given(*PLAN),
                "concurrency": self.given(*WORKERS),
                "budget": self.given(**BUDGET),
            }
        )


class JudgedConfig(LaunchConfig):
    """How answers are judged in this launch."""

    mode: Mode = Field(
        default=Mode.AUTO,
        description="AUTO and FIX judge whatever has no score; RESUME only what no judge has seen; "
        "FRESH judges everything again, of the current and the published benchmark version.",
    )
    judge: str | None = Field(
        default=None,
        description="Another judge than in the settings: judges what this judge has not scored, "
        "earlier verdicts stay.",
    )
    prompt: str | None = Field(
        default=None,
        description="The file of another judge prompt: judges what was not scored with it, "
        "earlier verdicts stay.",
    )
    rules: str | None = Field(
        default=None,
        description="off: the judge model judges; first: only where the rules are not certain; "
        "only: the rules judge and no model is asked.",
    )
    unsafe_no_sandbox: bool = Field(
        default=False,
        description="Run code that models wrote with no sandbox at all: it can do whatever the "
        "user of this process can.",
    )

    @classmethod
    def of(cls, settings: Settings, mode: Mode = Mode.AUTO) -> Self:
        """What the settings say, for the launchpad to begin with; to name a judge means more."""
        return cls(mode=mode, num_workers=settings.judge.num_workers, **_budgets(settings))

    @property
    def says_how(self) -> bool:
        """Whether it is to be judged in this very way, whoever has judged before."""
        return bool(self.given("judge", "prompt", "rules"))

    def apply(self, settings: Settings) -> Settings:
        """The settings with what this launch says instead."""
        judge = self.given("prompt", "rules", "num_workers", model="judge")
        if self.judge is not None:  # who names a judge means that one alone
            judge["also"] = ()
        coding = {"isolation": "none"} if self.unsafe_no_sandbox else {}
        budget = self.given(**BUDGET)
        return settings.overridden({"judge": judge, "coding": coding, "budget": budget})


class AllConfig(dg.Config):
    """Both stages, for every selected model."""

    predictions: PredictionsConfig = Field(description="How the models are asked.")
    judged: JudgedConfig = Field(description="How their answers are judged.")


class ReliabilityConfig(LaunchChoices):
    """How much is judged again in this launch; a field left empty keeps its value."""

    answers: int | None = Field(
        default=None, description="How many answers each judge judges again; 0 asks nobody."
    )
    repeats: int | None = Field(default=None, description="How often each of them is judged again.")
    judge: str | None = Field(
        default=None,
        description="This judge only; otherwise every one that has judged the latest runs.",
    )

    def apply(self, settings: Settings) -> Settings:
        """The settings with what this launch says instead."""
        return settings.overridden({"reliability": self.given("answers", "repeats")})


class ReportsConfig(LaunchChoices):
    """Which runs are analysed in this launch; a field left empty keeps its value."""

    run: str | None = Field(
        default=None,
        description="The run to analyse (its first characters, or latest); by default the latest "
        "one of each model and experiment.",
    )
    models: list[str] = Field(
        default=[],
        description="Only models with one of these in the id; patterns such as demo/* will do.",
    )
    analyst: str | None = Field(
        default=None, description="Another analyst than in the settings, who looks into it all."
    )
    fresh: bool = Field(
        default=False, description="Look again into failures that are explained already."
    )
    num_workers: int | None = Field(default=None, description="Failures at a time.")
    budget_usd: float | None = Field(
        default=None,
        description="Stop when a run has cost so much, asking, judging and analysing together.",
    )

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """What the settings say, for the launchpad to begin with."""
        return cls(
            analyst=settings.analysis.model,
            num_workers=settings.analysis.num_workers,
            budget_usd=settings.budget.usd_per_run,
        )

    def apply(self, settings: Settings) -> Settings:
        """The settings with what this launch says instead."""
        analysis = self.given("num_workers", model="analyst")
        budget = self.given(usd_per_run="budget_usd")
        return settings.overridden({"analysis": analysis, "budget": budget})


def _budgets(settings: Settings) -> dict[str, Any]:
    return {field: getattr(settings.budget, setting) for setting, field in BUDGET.items()}
