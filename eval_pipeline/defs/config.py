"""What can be set for one launch, in the UI's launchpad or on the command line."""

from typing import Any, Self

import dagster as dg
from pydantic import Field

from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.records.run import Mode
from eval_pipeline.settings.sections import Plan
from eval_pipeline.settings.settings import Settings


class CatalogConfig(dg.Config):
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
        chosen = settings.selection
        return cls(
            models=list(chosen.models),
            exclude_models=list(chosen.exclude_models),
            exclude_providers=list(chosen.exclude_providers),
            text_only=settings.plan.text_only,
        )

    def apply(self, settings: Settings) -> Settings:
        """The settings with what this launch says instead."""
        selection = _given(
            models=self.models,
            exclude_models=self.exclude_models,
            exclude_providers=self.exclude_providers,
        )
        plan = _given(text_only=self.text_only)
        return settings.overridden({"selection": selection, "plan": plan})


class LaunchConfig(dg.Config):
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

    def budget(self) -> dict[str, float]:
        """The budgets that this launch sets."""
        return _given(
            usd_per_run=self.budget_usd,
            usd_per_model=self.budget_usd_per_model,
            usd_per_day=self.budget_usd_per_day,
        )

    def launch(self, run: dg.DagsterRun) -> Launch:
        """Under which run, and what becomes of earlier work."""
        return Launch(
            run.run_id,
            self.mode,
            self.run_id,
            retry_of=run.root_run_id,
            continue_runs=self.runs,
        )

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
        plan, concurrency = settings.plan, settings.concurrency
        return cls(
            mode=mode,
            experiment=settings.experiment,
            text_only=plan.text_only,
            max_samples=plan.max_samples,
            samples=plan.samples,
            suites=list(plan.suites),
            categories=list(plan.categories),
            test_filter=plan.test_filter,
            num_workers=concurrency.num_workers,
            max_concurrent_models=concurrency.max_concurrent_models,
            budget_usd=settings.budget.usd_per_run,
            budget_usd_per_model=settings.budget.usd_per_model,
            budget_usd_per_day=settings.budget.usd_per_day,
        )

    def apply(self, settings: Settings) -> Settings:
        """The settings with what this launch says instead; a run that goes on has its own plan."""
        plan = _given(
            text_only=self.text_only,
            max_samples=self.max_samples,
            samples=self.samples,
            suites=self.suites,
            categories=self.categories,
            test_filter=self.test_filter,
        )
        return settings.overridden(
            _given(experiment=self.experiment)
            | {
                "plan": Plan().model_dump() if self.names_runs else plan,
                "concurrency": _given(
                    num_workers=self.num_workers, max_concurrent_models=self.max_concurrent_models
                ),
                "budget": self.budget(),
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
        return cls(
            mode=mode,
            num_workers=settings.judge.num_workers,
            budget_usd=settings.budget.usd_per_run,
            budget_usd_per_model=settings.budget.usd_per_model,
            budget_usd_per_day=settings.budget.usd_per_day,
        )

    @property
    def says_how(self) -> bool:
        """Whether it is to be judged in this very way, whoever has judged before."""
        return any(one is not None for one in (self.judge, self.prompt, self.rules))

    def apply(self, settings: Settings) -> Settings:
        """The settings with what this launch says instead."""
        # Who names a judge means that one alone.
        judge = _given(
            model=self.judge,
            also=None if self.judge is None else (),
            prompt=self.prompt,
            rules=self.rules,
            num_workers=self.num_workers,
        )
        coding = {"isolation": "none"} if self.unsafe_no_sandbox else {}
        return settings.overridden({"judge": judge, "coding": coding, "budget": self.budget()})


class AllConfig(dg.Config):
    """Both stages, for every selected model."""

    predictions: PredictionsConfig = Field(description="How the models are asked.")
    judged: JudgedConfig = Field(description="How their answers are judged.")

    @classmethod
    def of(cls, settings: Settings, mode: Mode) -> Self:
        """What the settings say, for the launchpad to begin with."""
        return cls(
            predictions=PredictionsConfig.of(settings, mode), judged=JudgedConfig.of(settings)
        )


class ReliabilityConfig(dg.Config):
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
        return settings.overridden(
            {"reliability": _given(answers=self.answers, repeats=self.repeats)}
        )

    def launch(self, run: dg.DagsterRun) -> str:
        """Under which run; one that is tried again goes on as the one that it was at first."""
        return run.root_run_id or run.run_id


class ReportsConfig(dg.Config):
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
        analysis = _given(model=self.analyst, num_workers=self.num_workers)
        budget = _given(usd_per_run=self.budget_usd)
        return settings.overridden({"analysis": analysis, "budget": budget})

    def launch(self, run: dg.DagsterRun) -> str:
        """Under which run; one that is tried again goes on as the one that it was at first."""
        return run.root_run_id or run.run_id


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
