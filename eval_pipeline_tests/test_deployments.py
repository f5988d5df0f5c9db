"""Deployments: each with its own data, gateways and budget; production is nobody's by accident."""

import json
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from eval_pipeline.definitions import build_definitions
from eval_pipeline.defs.instance import HistoryError, instance_as_it_is
from eval_pipeline.journal import PREDICTIONS, RUNS, Journal
from eval_pipeline.journal.deployment import may_write
from eval_pipeline.journal.tokens import Tokens, TokenScope
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.settings.settings import PRODUCTION, TOKEN, Settings
from eval_pipeline_tests.builders import a_journal, a_warehouse, settings_in
from eval_pipeline_tests.elsewhere import Sent
from eval_pipeline_tests.kept_files import files_in
from eval_pipeline_tests.project import call

GATEWAYS = [{"name": "demo", "kind": "demo"}, {"name": "other", "kind": "demo"}]
PROD = {
    "data_dir": "prod",
    "gateways": ["other"],
    "budget": {"usd_per_day": 5.0},
    "dagster_home": "home",
    "production": True,
}
CI = {"GITHUB_ACTIONS": "true", "GITHUB_REF": "refs/heads/main"}


def written(folder: Path, **prod: Any) -> Path:
    """The settings of a project with two deployments."""
    budget = {"usd_per_run": 1.0, "usd_per_day": 2.0}
    settings_in(folder, gateways=GATEWAYS, budget=budget, deployments={"prod": {**PROD, **prod}})
    return folder / "eval_pipeline.toml"


def read(path: Path, **environment: str) -> Settings:
    return Settings.from_env({"EVALS_SETTINGS": str(path), **environment})


def test_a_deployment_has_its_own_data_gateways_and_budget(tmp_path: Path) -> None:
    path = written(tmp_path)

    dev, prod = read(path), read(path, EVALS_DEPLOYMENT="prod")

    assert (dev.data, prod.data) == (tmp_path / "data", tmp_path / "prod")
    assert [one.name for one in dev.gateways] == ["demo", "other"]
    assert [one.name for one in prod.gateways] == ["other"]
    assert (dev.budget.usd_per_day, prod.budget.usd_per_day) == (2.0, 5.0)
    assert prod.budget.usd_per_run == 1.0
    assert not dev.here.production and prod.here.production


def test_the_environment_wins_over_the_deployment(tmp_path: Path) -> None:
    path = written(tmp_path)

    prod = read(path, EVALS_DEPLOYMENT="prod", EVALS_DATA_DIR="mine", BUDGET_USD_PER_DAY="7")

    assert (prod.data, prod.budget.usd_per_day) == (tmp_path / "mine", 7.0)


@pytest.mark.parametrize(
    ("name", "value"), [("budget", '"20"'), ("gateways", '["x", {name = "other", kind = "demo"}]')]
)
def test_a_wrong_value_is_refused_also_where_the_deployment_has_its_own(
    tmp_path: Path, name: str, value: str
) -> None:
    path = written(tmp_path)
    lines = path.read_text("utf-8").splitlines()
    path.write_text(
        "\n".join(f"{name} = {value}" if one.startswith(name) else one for one in lines)
    )

    with pytest.raises(SettingsError, match=rf"^eval_pipeline.toml: {name}"):
        read(path, EVALS_DEPLOYMENT="prod")


@pytest.mark.parametrize(
    ("changes", "chosen", "complaint"),
    [
        ({}, "test", "deployment: must be one of: dev, prod."),
        (
            {"gateways": ["nobody"]},
            "prod",
            "deployments.prod.gateways: no gateway is named 'nobody'.",
        ),
        ({"budget": {"usd_per_day": -1}}, "prod", "greater than 0"),
        ({"datadir": "x"}, "dev", "there is no such setting"),
    ],
)
def test_a_wrong_deployment_is_told_in_a_sentence(
    tmp_path: Path, changes: dict[str, Any], chosen: str, complaint: str
) -> None:
    with pytest.raises(SettingsError) as error:
        read(written(tmp_path, **changes), EVALS_DEPLOYMENT=chosen)

    assert complaint in str(error.value)


@pytest.mark.parametrize(
    ("scope", "environment", "allowed"),
    [
        (None, {}, False),
        (None, {PRODUCTION: "1"}, False),
        (TokenScope.PRODUCTION, {}, False),
        (TokenScope.WRITE, {PRODUCTION: "1"}, False),
        (TokenScope.PRODUCTION, {PRODUCTION: "1"}, True),
        (None, CI, True),
        (None, {**CI, "GITHUB_REF": "refs/heads/other"}, False),
        (None, {**CI, "GITHUB_REF": "refs/tags/main"}, False),
        (None, {**CI, "GITHUB_REF": "refs/pull/1/merge"}, False),
        (None, {**CI, "GITHUB_EVENT_NAME": "schedule"}, True),
        (None, {**CI, "GITHUB_EVENT_NAME": "pull_request_target"}, False),
        (None, {"GITHUB_REF": "refs/heads/main"}, False),
    ],
)
def test_production_is_written_to_by_who_says_so_and_has_a_token_or_by_ci(
    tmp_path: Path, scope: TokenScope | None, environment: dict[str, str], allowed: bool
) -> None:
    path = written(tmp_path)
    if scope is not None:
        secret = Tokens(tmp_path / "prod" / "tokens.json").create("me", [scope])
        environment = {**environment, TOKEN: secret.get_secret_value()}

    assert may_write(read(path, EVALS_DEPLOYMENT="prod", **environment)) is allowed
    assert may_write(read(path, **environment))


def test_a_revoked_token_writes_no_more(tmp_path: Path) -> None:
    path, tokens = written(tmp_path), Tokens(tmp_path / "prod" / "tokens.json")
    secret = tokens.create("me", [TokenScope.PRODUCTION]).get_secret_value()
    settings = read(path, **{"EVALS_DEPLOYMENT": "prod", TOKEN: secret, PRODUCTION: "1"})

    before = may_write(settings)
    tokens.revoke("me")

    assert (before, may_write(settings)) == (True, False)


def test_commands_write_to_production_only_if_it_is_said_twice(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "home").mkdir()
    a_warehouse(tmp_path / "prod")
    secret = Tokens(tmp_path / "prod" / "tokens.json").create("me", [TokenScope.PRODUCTION])
    token = {TOKEN: secret.get_secret_value()}
    delete = "delete run-1 --yes"

    refused = call(tmp_path, f"evals --deployment prod {delete}", token)
    unarmed = call(tmp_path, f"evals --deployment prod --production {delete}")
    there = call(tmp_path, "evals --deployment prod runs --json")
    done = call(tmp_path, f"evals --deployment prod --production {delete}", token)

    assert (refused.returncode, unarmed.returncode, done.returncode) == (2, 2, 0), done.stderr
    assert "marked as production" in refused.stderr and secret.get_secret_value() not in done.stderr
    assert [run["run_id"] for run in json.loads(there.stdout)] == ["run-1"]
    assert list(Journal(tmp_path / "prod" / "journal").read(RUNS)) == []


@pytest.mark.parametrize(
    ("prod", "environment"),
    [
        ({}, {"EVALS_DATA_DIR": "prod"}),
        ({}, {"EVALS_DATA_DIR": "data/../prod/"}),
        ({"data_dir": "data"}, {}),
    ],
)
def test_production_is_known_by_its_results_whatever_it_is_called(
    tmp_path: Path, prod: dict[str, str], environment: dict[str, str]
) -> None:
    path = written(tmp_path, **prod)

    assert not may_write(read(path, **environment))
    assert may_write(read(path, **environment, **CI))
    assert may_write(read(path, EVALS_DATA_DIR="mine"))


def test_what_the_file_says_for_all_is_production_s_too(tmp_path: Path) -> None:
    settings_in(tmp_path, data_dir="shared", deployments={"prod": {"production": True}})
    path = tmp_path / "eval_pipeline.toml"

    assert not may_write(read(path))
    assert may_write(read(path, EVALS_DATA_DIR="mine"))


READING = (
    *("status", "runs", "leaderboard", "metrics", "doctor"),
    *("show run-1 q1", "query select(1)", "benchmark list"),
)
WRITING = ("rebuild", "delete run-1 --yes", "prune --yes", "import zenmux .")


def test_who_only_looks_at_production_changes_no_file_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    (tmp_path / "home").mkdir()
    a_warehouse(tmp_path / "prod")
    before = files_in(tmp_path / "prod")
    # As on a branch that computes other numbers: everywhere else all would be built anew.
    monkeypatch.setattr("eval_pipeline.results.warehouse.recipe", lambda: ["another way"])

    read_codes = {
        command: call(tmp_path, f"evals --deployment prod {command}").returncode
        for command in READING
    }
    write_codes = {
        command: call(tmp_path, f"evals --deployment prod {command}").returncode
        for command in WRITING
    }

    assert read_codes == dict.fromkeys(READING, 0)
    assert write_codes == dict.fromkeys(WRITING, 2)
    assert files_in(tmp_path / "prod") == before


def test_production_that_has_published_nothing_is_left_empty(tmp_path: Path) -> None:
    written(tmp_path)

    done = call(tmp_path, "evals --deployment prod runs")

    assert (done.returncode, "has published nothing yet" in done.stderr) == (1, True)
    assert not (tmp_path / "prod").exists()


@pytest.mark.parametrize("chosen", ["dev", "prod"])
def test_a_launch_can_not_say_where_results_are_written(tmp_path: Path, chosen: str) -> None:
    settings = read(written(tmp_path), EVALS_DEPLOYMENT=chosen)
    warehouse = a_warehouse(tmp_path / "prod")
    before = files_in(tmp_path / "prod")

    done = (
        build_definitions(settings)
        .resolve_implicit_global_asset_job_def()
        .execute_in_process(
            run_config={"resources": {"warehouse": {"config": {"database": str(warehouse.path)}}}},
            asset_selection=[dg.AssetKey("model_catalog")],
            raise_on_error=False,
        )
    )

    assert not done.success
    assert files_in(tmp_path / "prod") == before


def test_a_deployment_has_its_own_dagster_instance(tmp_path: Path) -> None:
    prod = read(written(tmp_path), EVALS_DEPLOYMENT="prod")
    with pytest.raises(HistoryError, match="home: there is no such folder"):
        instance_as_it_is(prod).__enter__()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")

    with instance_as_it_is(prod) as instance:
        root = Path(instance.root_directory)

    assert root == tmp_path / "home"


def test_sync_copies_what_is_not_here_and_nothing_else(tmp_path: Path) -> None:
    sent = Sent(tmp_path / "sent")
    written(tmp_path)
    a_journal(
        tmp_path / "prod",
        sent.run,
        *sent.predictions,
        *sent.judgements,
        benchmark=sent.benchmark,
    )
    before = files_in(tmp_path / "prod")

    first = call(tmp_path, "evals sync --from prod --json")
    again = call(tmp_path, "evals sync --from prod")
    runs = call(tmp_path, "evals runs --json")

    assert json.loads(first.stdout) == {
        "runs": 1,
        "changed": [
            {
                "run_id": "run-1",
                "model": "demo/strong",
                "is_new": True,
                "predictions": 3,
                "judgements": 3,
            }
        ],
    }
    assert "1 runs of prod, 0 of them with something new" in again.stdout
    assert [run["accuracy"] for run in json.loads(runs.stdout)] == [1.0]
    assert len(list(Journal(tmp_path / "data" / "journal").read(PREDICTIONS))) == 3
    assert files_in(tmp_path / "prod") == before


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("evals sync --from nowhere", "must be one of: dev, prod"),
        ("evals sync --from dev", "where this deployment does"),
        ("evals sync --from prod", "mount the folder of prod"),
        ("evals --deployment prod sync --from dev", "marked as production"),
        ("evals --deployment prod import zenmux .", "marked as production"),
        ("evals --deployment nowhere runs", "must be one of: dev, prod"),
    ],
)
def test_what_can_not_be_synced_is_said(tmp_path: Path, command: str, complaint: str) -> None:
    written(tmp_path)

    done = call(tmp_path, command)

    assert (done.returncode, complaint in done.stderr) == (2, True)
