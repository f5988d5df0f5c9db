"""`dagster dev`, a real webserver and daemon: its API, and its pages as people see them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from eval_pipeline.defs.partitions import RANGE_END, RANGE_START
from eval_pipeline_tests.browsing import a_browser, listen
from eval_pipeline_tests.builders import a_question
from eval_pipeline_tests.webserver import (
    IMPATIENT,
    LOCATION,
    STAGES,
    Webserver,
    a_quick_project,
    change,
    dagster_dev,
)

GROUPS = {
    "inputs": {"dataset", "model_catalog"},
    "runs": {"predictions", "judged"},
    "results": {"judge_reliability", "run_reports", "metrics", "comparisons", "leaderboard"},
}
ASSETS = set.union(*GROUPS.values())
PATIENCE_MS = 60_000
MODELS = ("demo/average", "demo/strong", "demo/weak")
ITEMS = [a_question(f"q{number}") for number in range(1, 6)]
GRAPH = """
{ assetNodes {
    assetKey { path }
    groupName
    description
    kinds
    owners { ... on TeamAssetOwner { team } }
    metadataEntries {
      ... on CodeReferencesMetadataEntry {
        codeReferences { ... on LocalFileCodeReference { filePath lineNumber } }
      }
    }
    assetChecksOrError { ... on AssetChecks { checks { name description } } }
} }
"""
REPOSITORY = """
query Repository($location: RepositorySelector!) {
  repositoryOrError(repositorySelector: $location) {
    ... on Repository {
      jobs { name description }
      schedules { name scheduleState { status } }
      sensors { name sensorState { status } }
    }
  }
}
"""
LATEST = """
query Latest($asset: AssetKeyInput!, $partitions: [String!]) {
  assetOrError(assetKey: $asset) {
    ... on Asset {
      assetMaterializations(limit: 1, partitions: $partitions) {
        metadataEntries {
          label
          ... on IntMetadataEntry { intValue }
          ... on FloatMetadataEntry { floatValue }
          ... on MarkdownMetadataEntry { mdStr }
          ... on TableSchemaMetadataEntry { schema { columns { name type description } } }
        }
      }
    }
  }
}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = a_quick_project(tmp_path_factory.mktemp("project"), ITEMS)
    change(project / "eval_pipeline.toml", "num_workers = 50", "num_workers = 7")
    change(project / "eval_pipeline.toml", "usd_per_run = 20.0", "usd_per_run = 3.5")
    return project


@pytest.fixture(scope="module")
def webserver(project: Path) -> Iterator[Webserver]:
    with dagster_dev(project, *IMPATIENT) as webserver:
        yield webserver


@pytest.fixture(scope="module")
def evaluated(webserver: Webserver) -> Webserver:
    """All models have been evaluated, by the job that is for that."""
    assert webserver.launch("evaluate_all") == "SUCCESS"
    return webserver


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, webserver: Webserver) -> Iterator[Page]:
    """An empty page; whatever is then opened in it must not complain."""
    page = browser.new_page(
        base_url=webserver.address, viewport={"width": 1500, "height": 1000}, locale="en-US"
    )
    page.set_default_timeout(PATIENCE_MS)
    complaints = listen(page)
    yield page
    page.close()
    assert complaints == []


def latest(webserver: Webserver, asset: str, *partitions: str) -> dict[str, Any]:
    """The metadata of its latest materialization by name, each as its only value."""
    chosen = list(partitions) or None
    found = webserver.ask(LATEST, asset={"path": [asset]}, partitions=chosen)["assetOrError"]
    entries = found["assetMaterializations"][0]["metadataEntries"]
    return {entry.pop("label"): next(iter(entry.values()), None) for entry in entries}


def named(page: Page, label: str) -> Locator:
    """The line of that name in a table of metadata."""
    return page.locator(f"xpath=//tr[normalize-space(td[1]) = '{label}']")


def row(page: Page, label: str) -> str:
    """What it says beside the name."""
    return named(page, label).inner_text().removeprefix(label).strip()


def test_the_ui_shows_what_each_asset_is_and_where_its_code_is(webserver: Webserver) -> None:
    nodes = {node["assetKey"]["path"][0]: node for node in webserver.ask(GRAPH)["assetNodes"]}

    assert {
        group: {name for name, node in nodes.items() if node["groupName"] == group}
        for group in GROUPS
    } == GROUPS
    assert set(nodes) == ASSETS
    for node in nodes.values():
        assert node["description"] and "duckdb" in node["kinds"]
        assert node["owners"] == [{"team": "evals"}]
        (written,) = (entry for entry in node["metadataEntries"] if entry)
        (place,) = written["codeReferences"]
        line = Path(place["filePath"]).read_text("utf-8").splitlines()[place["lineNumber"] - 1]
        assert line.startswith("@dg.asset")


def test_the_ui_shows_checks_and_why_they_matter(webserver: Webserver) -> None:
    nodes = {node["assetKey"]["path"][0]: node for node in webserver.ask(GRAPH)["assetNodes"]}

    checks = {name: node["assetChecksOrError"]["checks"] for name, node in nodes.items()}
    assert {name for name, found in checks.items() if found} == ASSETS - {
        "comparisons",
        "judge_reliability",
        "run_reports",
    }
    assert all(check["description"] for found in checks.values() for check in found)


def test_the_ui_lists_the_jobs_and_what_starts_by_itself(webserver: Webserver) -> None:
    found = webserver.ask(REPOSITORY, location=LOCATION)["repositoryOrError"]

    assert {job["name"] for job in found["jobs"] if job["description"]} == {
        "analyze",
        "evaluate",
        "evaluate_all",
        "fix_evaluation",
        "fix_judge",
        "metrics_only",
        "refresh_catalog",
    }
    schedules = {one["name"]: one["scheduleState"]["status"] for one in found["schedules"]}
    sensors = {one["name"]: one["sensorState"]["status"] for one in found["sensors"]}
    # What asks gateways or costs money is off until somebody says otherwise.
    assert schedules == {"due_models": "STOPPED"}
    assert sensors == {
        "dead_runs": "RUNNING",
        "discovery": "STOPPED",
        "failed_runs": "STOPPED",
        "follow": "RUNNING",
    }


def test_the_launchpad_begins_with_the_settings_and_explains_each_field(
    evaluated: Webserver,
) -> None:
    schema = evaluated.schema("evaluate_all")
    for_one, tags = evaluated.partition("evaluate", "demo/weak")

    for config in (schema["rootDefaultYaml"], for_one):
        assert "num_workers: 7\n" in config and config.count("budget_usd: 3.5\n") == 2
    assert {"key": "dagster/partition", "value": "demo/weak"} in tags
    types = [kind["fields"] for kind in schema["allConfigTypes"] if "fields" in kind]
    ours = [fields for fields in types if any(one["name"] == "budget_usd" for one in fields)]
    assert len(ours) == 2
    assert all(one["description"] for fields in ours for one in fields)


@pytest.mark.slow
def test_the_job_for_one_model_is_launched_with_its_partition(
    project: Path, evaluated: Webserver
) -> None:
    ended = evaluated.launch("evaluate", "demo/weak")

    assert ended == "SUCCESS"
    with duckdb.connect(str(project / "data" / "evals.duckdb"), read_only=True) as db:
        counted = db.sql("select model, count(distinct run_id) from runs group by 1 order by 1")
        ranked = db.sql("select count(*) from leaderboard where judged = 5")
        assert counted.fetchall() == [(model, 1 + (model == "demo/weak")) for model in MODELS]
        assert ranked.fetchall() == [(3,)]


@pytest.mark.slow
def test_materializing_all_models_at_once_is_one_run(project: Path, evaluated: Webserver) -> None:
    runs = evaluated.backfill(STAGES, MODELS)

    (asking,) = [run for run in runs if "predictions" in run.assets]
    assert (asking.tags[RANGE_START], asking.tags[RANGE_END]) == (MODELS[0], MODELS[-1])
    with duckdb.connect(str(project / "data" / "evals.duckdb"), read_only=True) as db:
        counted = db.execute(
            "select model, count(score) from judged where run_id = ? group by 1 order by 1",
            [asking.run_id],
        )
        assert counted.fetchall() == [(model, len(ITEMS)) for model in MODELS]


def test_a_materialization_tells_how_it_went_in_numbers_and_what_the_table_holds(
    evaluated: Webserver,
) -> None:
    asked = latest(evaluated, "predictions", "demo/strong")
    ranked = latest(evaluated, "leaderboard")

    assert asked["outcome_ok"] == asked["planned"] == 5 and asked["failed"] == 0
    assert isinstance(asked["cost_usd"], float) and asked["cost_usd"] > 0
    assert 0 < asked["latency_p50_s"] <= asked["latency_p95_s"]
    assert asked["failures"] == "none"
    assert ranked["models_ranked"] == 3 and 0 < ranked["best_accuracy"] <= 1
    for metadata, column in ((asked, "outcome"), (ranked, "accuracy")):
        columns = {one["name"]: one for one in metadata["dagster/column_schema"]["columns"]}
        assert columns[column]["type"]
        assert all(one["description"] for one in columns.values())
        assert metadata["dagster/row_count"] > 0


def test_people_see_all_assets_in_the_graph(evaluated: Webserver, page: Page) -> None:
    opened = "%2C".join(f"global%40global%3A{group}" for group in GROUPS)

    page.goto(f"/asset-groups?expanded={opened}")

    for name in ASSETS:
        expect(page.locator("svg").get_by_text(name, exact=True).first).to_be_visible(
            timeout=PATIENCE_MS
        )


def test_people_see_how_a_model_did_on_its_partition(evaluated: Webserver, page: Page) -> None:
    told = latest(evaluated, "predictions", "demo/strong")

    page.goto("/assets/predictions?view=partitions&partition=demo%2Fstrong")

    page.get_by_text("latency_p95_s", exact=True).wait_for()
    expect(page.get_by_text("Materialized", exact=True).first).to_be_visible(timeout=PATIENCE_MS)
    assert (row(page, "answered"), row(page, "failed"), row(page, "outcome_ok")) == ("5", "0", "5")
    for name in ("cost_usd", "latency_p50_s", "latency_p95_s"):
        assert float(row(page, name)) == pytest.approx(told[name])
    # Markdown is drawn a little later than the rest.
    expect(named(page, "failures")).to_contain_text("none", timeout=PATIENCE_MS)


def test_people_launch_a_job(evaluated: Webserver, page: Page) -> None:
    page.goto("/locations/eval_pipeline/jobs/evaluate_all/playground")
    page.get_by_text("num_workers: 7").wait_for()
    page.goto("/locations/eval_pipeline/jobs/metrics_only/playground")
    page.get_by_role("button", name="Launch Run").click()
    page.wait_for_url(re.compile("/runs/[0-9a-f-]+"))

    run_id = page.url.split("/runs/")[1][:36]
    # A page that follows the run takes the time that the run needs.
    page.goto("about:blank")
    ended = evaluated.ended(run_id)
    page.goto(f"/runs/{run_id}")

    assert ended == "SUCCESS"
    expect(page.get_by_text("Success", exact=True).first).to_be_visible(timeout=PATIENCE_MS)
