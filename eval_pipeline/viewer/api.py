"""The API for reading: which documents there are, and what is in them."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from eval_pipeline.analysis.evidence import debug_document, look_into
from eval_pipeline.analysis.failures import as_json as failures_document
from eval_pipeline.item_report.choosing import Chosen
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.runs import FoundRun, find_runs, model_rows, rows_of, run_rows
from eval_pipeline.results.side_by_side import SideBySide, compare_sides
from eval_pipeline.viewer.addresses import Parts, number
from eval_pipeline.viewer.making import find_model
from eval_pipeline.viewer.page import AskedError, NotThereError, Row, View
from eval_pipeline.viewer.pages import runs as run_pages
from eval_pipeline.viewer.pages.items import planned
from eval_pipeline.viewer.pages.leaderboard import all_versions, left_out

ROOT = "/api/v1"
RUN = f"{ROOT}/runs/{{run_id}}/{{model}}"


class Document(NamedTuple):
    """What stands at an address; `asked` are the names that may stand after its ?, explained."""

    address: str
    summary: str
    make: Callable[[View, Parts], Row]
    asked: Mapping[str, str] = {}


def leaderboard(view: View, at: Parts) -> Row:
    """The published version, or an older one; over everything or one slice."""
    del at
    suite, category, version = (view.asked.get(name) for name in ("suite", "category", "version"))
    about = _version(view, version)
    if about is None or about["is_published"]:
        slice_of = {"suite": suite, "category": category}
        found = rows(query(view.db, "viewer/leaderboard", slice_of))
    else:
        found = rows(query(view.db, "viewer/old_leaderboard", {"version": version}))
    return {"benchmark_version": about, "leaderboard": found, "left_out": left_out(view)}


def models(view: View, at: Parts) -> Row:
    """The catalog."""
    del at
    return {"models": model_rows(view.db)}


def model(view: View, at: Parts) -> Row:
    """One model, with its runs."""
    name = find_model(view, at["model"])
    about = next(iter(rows(query(view.db, "viewer/model", {"model": name}))), None)
    if about is None:
        raise NotThereError(f"There is no model {name}.")
    runs = [run for run in run_rows(view.db, _at_work(view)) if run["model"] == name]
    return {"model": about, "runs": runs}


def runs(view: View, at: Parts) -> Row:
    """Runs, the newest first, a page at a time."""
    del at
    wanted = {name: view.asked[name] for name in ("model", "experiment") if name in view.asked}
    found = [
        run
        for run in run_rows(view.db, _at_work(view))
        if all(run[name] == value for name, value in wanted.items())
    ]
    shown = run_pages.page_of(found, number(view.asked.get("page", "1")), run_pages.RUNS_A_PAGE)
    return {"runs": shown.entries, "page": shown.page, "pages": shown.pages}


def launch(view: View, at: Parts) -> Row:
    """All that one launch opened, a run of each model."""
    found = find_runs(view.db, at["run_id"])
    return {"runs": rows_of(view.db, _at_work(view), found)}


def run(view: View, at: Parts) -> Row:
    """One run with its categories, steps and how its replies ended."""
    found = _run(view, at)
    (about,) = rows_of(view.db, _at_work(view), [found])
    named = {"run_id": found.run_id, "model": found.model}
    return {"run": about, "outcomes": rows(query(view.db, "viewer/outcomes", named))}


def launch_failures(view: View, at: Parts) -> Row:
    """What failed in a run, of all its models."""
    found = find_runs(view.db, at["run_id"])
    return failures_document(view.db, found, at_work=_at_work(view))


def failures(view: View, at: Parts) -> Row:
    """What failed in a run of one model."""
    return failures_document(view.db, [_run(view, at)], at_work=_at_work(view))


def items(view: View, at: Parts) -> Row:
    """The items of a run as they went, a page at a time."""
    found, page = _run(view, at), number(view.asked.get("page", "1"))
    show = view.asked.get("show", "all")
    made = run_pages.items(view, found.run_id, found.model, show, page)
    return {"items": made.shown["entries"], "page": page, "pages": made.shown["pages"]}


def item(view: View, at: Parts) -> Row:
    """An item in a run with all that is known of it, as `evals debug --json` tells it."""
    found = _run(view, at)
    key = planned(view, found.run_id, found.model, at["suite"], at["item_id"])
    chosen = Chosen(found.run_id, found.model, key)
    return debug_document(look_into(view.db, view.settings, view.journal, chosen))


def benchmark_versions(view: View, at: Parts) -> Row:
    """Every version there was, the latest first."""
    del at
    return {"benchmark_versions": all_versions(view)}


def compare(view: View, at: Parts) -> Row:
    """Two models or runs item by item."""
    del at
    sides = view.asked.get("a"), view.asked.get("b")
    if not all(sides):
        raise AskedError("Name two models or runs: ?a=…&b=…")
    return _compared(
        compare_sides(
            view.db,
            *map(str, sides),
            experiment=view.asked.get("experiment") or view.settings.experiment,
            judge=view.asked.get("judge"),
        )
    )


_PAGE = {"page": "From 1 on."}
DOCUMENTS = (
    Document(
        f"{ROOT}/leaderboard",
        "The leaderboard, and which runs are not on it.",
        leaderboard,
        {
            "suite": "Over one suite only.",
            "category": "Over one category of it only.",
            "version": "An older benchmark version; by default the published one.",
        },
    ),
    Document(f"{ROOT}/models", "Every model of the catalog with its latest run.", models),
    Document(f"{ROOT}/models/{{model}}", "One model with its runs.", model),
    Document(
        f"{ROOT}/runs",
        "Runs, the newest first.",
        runs,
        {"model": "Of this model only.", "experiment": "Under this experiment only.", **_PAGE},
    ),
    Document(f"{ROOT}/runs/{{run_id}}", "All that one launch opened.", launch),
    Document(
        f"{ROOT}/runs/{{run_id}}/failures",
        "What failed in a run, of all its models: totals, and each failure with what is known.",
        launch_failures,
    ),
    Document(RUN, "One run with its categories, steps and outcomes.", run),
    Document(f"{RUN}/failures", "What failed in a run of one model.", failures),
    Document(
        f"{RUN}/items",
        "The items of a run as they went.",
        items,
        {"show": f"One of {', '.join(run_pages.SHOWN)}.", **_PAGE},
    ),
    Document(
        f"{RUN}/items/{{suite}}/{{item_id}}",
        "An item in a run: prompt, reply, files, reference, grader, verdicts and steps.",
        item,
    ),
    Document(f"{ROOT}/benchmark-versions", "Every benchmark version.", benchmark_versions),
    Document(
        f"{ROOT}/compare",
        "Two models or runs, paired item by item.",
        compare,
        {
            "a": "A model, the first characters of a run's id, or model@run.",
            "b": "The other one.",
            "experiment": "Of the models; by default that of the settings.",
            "judge": "By whose verdicts; by default the official one.",
        },
    ),
)


def _at_work(view: View) -> list[str]:
    return [one.run_id for one in view.follower.at_work()]


def _version(view: View, name: str | None) -> Row | None:
    known = all_versions(view)
    if name is None:
        return next((one for one in known if one["is_published"]), None)
    found = next((one for one in known if one["benchmark_version"] == name), None)
    if found is None:
        raise NotThereError(f"There is no benchmark version {name}.")
    return found


def _run(view: View, at: Parts) -> FoundRun:
    """`latest` and the first characters of an id mean a run too."""
    name = find_model(view, at["model"])
    for one in find_runs(view.db, at["run_id"]):
        if one.model == name:
            return one
    raise NotThereError(f"There is no run {at['run_id']} of {name}.")


def _compared(found: SideBySide) -> dict[str, Any]:
    paired = found.compared.paired
    return {
        "a": vars(found.a),
        "b": vars(found.b),
        **found.judge._asdict(),
        "accuracy_a": found.compared.accuracy_a,
        "accuracy_b": found.compared.accuracy_b,
        **{name: value for name, value in paired._asdict().items() if name != "bootstrap"},
        "p_adjusted": found.corrected,
        "pairs": found.pairs,
        "is_official": found.is_official,
        "differences": [one._asdict() for one in found.differences],
    }
