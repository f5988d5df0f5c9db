"""The plots of the results: what they are drawn from, the files, and the pictures in the UI."""

import re
import xml.etree.ElementTree as ET
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import numpy as np
import pytest

from eval_pipeline.defs.metadata import plots
from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import Journal
from eval_pipeline.records.run import Run
from eval_pipeline.results.charts import plot
from eval_pipeline.results.queries import query
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline_tests.boards import EXAM, ITEMS, graded, scores_of, taken, verdicts
from eval_pipeline_tests.builders import settings_in
from eval_pipeline_tests.test_metrics import published
from eval_pipeline_tests.test_pipeline import STAGES, Graph

NAMES = ("accuracy", "accuracy_and_cost", "calibration", "categories")
IN_METRICS, IN_LEADERBOARD = {"calibration", "categories"}, {"accuracy", "accuracy_and_cost"}
FILES = {f"{name}.svg" for name in NAMES}


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def picture(metadata: object) -> ET.Element:
    """The picture that a piece of Markdown carries in itself."""
    assert isinstance(metadata, dg.MarkdownMetadataValue)
    found = re.fullmatch(r"!\[.*\]\(data:image/svg\+xml;base64,(.*)\)", metadata.value or "")
    assert found
    return ET.fromstring(b64decode(found[1]))


def words(warehouse: Warehouse, name: str) -> str:
    """All that is written in a plot."""
    with warehouse.reading() as db:
        content = plot(db, name)[name].svg()
    return "\n".join(re.findall(r">([^<>\n]+)</text>", content))


@pytest.mark.slow
def test_the_graph_leaves_plots_in_the_ui_and_in_a_folder(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    settings = settings_in(tmp_path)
    graph = Graph(settings, instance, checked=False)
    graph.run("dataset", "model_catalog")

    result = graph.run(*STAGES, "comparisons", partition="demo/strong", drawn=True)

    assert result.success
    for asset, expected in (("metrics", IN_METRICS), ("leaderboard", IN_LEADERBOARD)):
        (shown,) = result.asset_materializations_for_node(asset)
        pictures = {name for name in shown.metadata if name.startswith("plot_")}
        assert pictures == {f"plot_{name}" for name in expected}
        assert all(picture(shown.metadata[name]).get("role") == "img" for name in pictures)
    assert {path.name for path in settings.plots.iterdir()} == FILES
    assert settings.plots == tmp_path / "reports" / "plots"
    assert b"SIMULATED" in (settings.plots / "accuracy.svg").read_bytes()


def test_without_any_result_the_assets_work_and_the_plots_say_so(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    settings = settings_in(tmp_path)

    result = Graph(settings, instance).run("metrics", "comparisons", "leaderboard", drawn=True)

    assert result.success
    assert {path.name for path in settings.plots.iterdir()} == FILES
    for name in NAMES:
        assert b"Nothing judged yet" in (settings.plots / f"{name}.svg").read_bytes()


def test_a_folder_of_plots_is_made_even_of_an_empty_warehouse(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "evals.duckdb", Journal(tmp_path / "journal"))

    with warehouse.reading() as db:
        shown = plots(db, tmp_path / "new" / "plots", *NAMES)

    assert shown.keys() == {f"plot_{name}" for name in NAMES}
    assert {path.name for path in (tmp_path / "new" / "plots").iterdir()} == FILES


def test_what_is_plotted_is_by_the_judge_who_graded_most_and_of_the_latest_run(
    tmp_path: Path,
) -> None:
    first, last = (taken("demo/a", f"run-{n}", hour=n) for n in range(2))
    other, alone = taken("demo/b"), taken("demo/alone", hour=5)
    part = scores_of(0.5, seed=1)
    physics = np.array([[float(item.category == "Physics")] for item in EXAM.items.values()])

    warehouse = published(
        tmp_path,
        *[*graded(first, part), *graded(last, physics), *graded(other, part)],
        *[*verdicts(other, part, judge="other/judge")],
        *graded(alone, np.ones((ITEMS, 1)), judge="other/judge", judge_version="v0"),
        benchmark=EXAM,
    )

    for name in ("accuracy", "categories"):
        written = words(warehouse, name)
        assert "demo/a" in written and "demo/b" in written
        assert "demo/alone" not in written
    with warehouse.reading() as db:
        plot(db, "categories")
        shares = db.sql(
            "select category, accuracy from metrics "
            "join (select run_id, model, judge, judge_version from plotted) "
            "using (run_id, model, judge, judge_version) "
            "where slice = 'category' and model = 'demo/a' order by category"
        ).fetchall()
    assert shares == [("Biology", 0), ("Math", 0), ("Physics", 1)]


def test_what_is_plotted_is_what_is_printed_and_not_what_a_trial_says(tmp_path: Path) -> None:
    a, b, alone = (taken(f"demo/{name}") for name in ("a", "b", "alone"))
    own = {"prompt_hash": EXAM.version.judge_prompt_hash}
    trial = {"prompt_hash": fingerprint("a prompt on trial"), "judge_version": "trial"}
    ones, zeros = np.ones((ITEMS, 1)), np.zeros((ITEMS, 1))

    warehouse = published(
        tmp_path,
        *[*graded(a, ones, **own), *graded(b, ones, **own), *graded(alone, zeros, **trial)],
        *[*verdicts(a, zeros, **trial), *verdicts(b, zeros, **trial)],
        benchmark=EXAM,
    )

    with warehouse.reading() as db:
        plot(db, "accuracy")
        columns = "model, judge_version, accuracy"
        plotted = db.sql(f"select {columns} from plotted order by model").fetchall()
        printed = query(db, "summaries/leaderboard").project(columns).order("model").fetchall()
    assert plotted == printed == [("demo/a", "v1", 1), ("demo/b", "v1", 1)]
    for name in ("accuracy", "categories"):
        assert "demo/alone" not in words(warehouse, name)


def test_the_judge_who_is_plotted_graded_the_most_models_and_not_the_most_experiments(
    tmp_path: Path,
) -> None:
    a, b, *others = (taken("demo/a"), taken("demo/b"), *map(an_experiment, range(3)))
    ones = np.ones((ITEMS, 1))

    warehouse = published(
        tmp_path,
        *[*graded(a, ones), *graded(b, ones)],
        *[record for run in others for record in graded(run, ones, judge="other/judge")],
        benchmark=EXAM,
    )

    with warehouse.reading() as db:
        plot(db, "accuracy")
        assert set(db.sql("select judge from plotted").fetchall()) == {("demo/judge",)}


def an_experiment(number: int) -> Run:
    return taken("demo/a", f"hot-{number}", hour=5, experiment=f"hot-{number}")
