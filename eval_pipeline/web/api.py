"""The API for reading: its documents, with their addresses and parameters."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from eval_pipeline.analysis.evidence import debug_document, look_into
from eval_pipeline.analysis.failures import as_json as failures_document
from eval_pipeline.evaluation.item_prompt import Chosen
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.runs import FoundRun, find_runs, model_rows, rows_of, run_rows
from eval_pipeline.web.pages import runs as run_pages
from eval_pipeline.web.pages.compare import two_sides
from eval_pipeline.web.pages.items import planned
from eval_pipeline.web.pages.leaderboard import (
    all_versions,
    find_version,
    leaderboard_rows,
    left_out,
    published_version,
)
from eval_pipeline.web.pages.models import described
from eval_pipeline.web.routes import (
    AskedError,
    NotThereError,
    Parts,
    Row,
    View,
    find_model,
    parse_page_number,
)

ROOT = "/api/v1"
RUN = f"{ROOT}/runs/{{run_id}}/{{model}}"
PAGE = "From 1 on."
Make = Callable[[View, Parts], Row]


class Document(NamedTuple):
    """A document at an address; its function's docstring is the summary in the API description."""

    address: str
    make: Make
    parts: tuple[str, ...]
    """The parts that are rows of a query, as openapi.ROWS_OF names them."""
    asked: Mapping[str, str]
    """The parameters after the ? with their descriptions."""


DOCUMENTS: list[Document] = []


def _at(address: str, *parts: str, **asked: str) -> Callable[[Make], Make]:
    def register(make: Make) -> Make:
        DOCUMENTS.append(Document(address, make, parts, asked))
        return make

    return register


@_at(
    f"{ROOT}/leaderboard",
    "leaderboard",
    "left_out",
    suite="Over one suite only.",
    category="Over one category of it only.",
    version="An older benchmark version; by default the published one.",
)
def leaderboard(view: View, at: Parts) -> Row:
    """The leaderboard, and which runs are not on it."""
    suite, category, version = (view.asked.get(name) for name in ("suite", "category", "version"))
    about = published_version(view) if version is None else find_version(view, version)
    if about is None or about["is_published"]:
        found = leaderboard_rows(view, suite, category)
    else:
        found = rows(query(view.db, "viewer/old_leaderboard", {"version": version}))
    return {"benchmark_version": about, "leaderboard": found, "left_out": left_out(view)}


@_at(f"{ROOT}/models", "models")
def models(view: View, at: Parts) -> Row:
    """Every model of the catalog with its latest run."""
    return {"models": model_rows(view.db)}


@_at(f"{ROOT}/models/{{model}}", "runs")
def model(view: View, at: Parts) -> Row:
    """One model with its runs."""
    about, runs = described(view, at["model"], _at_work(view))
    return {"model": about, "runs": runs}


@_at(
    f"{ROOT}/runs",
    "runs",
    model="Of this model only.",
    experiment="Under this experiment only.",
    page=PAGE,
)
def runs(view: View, at: Parts) -> Row:
    """Runs, the newest first."""
    found, page = run_rows(view.db, _at_work(view)), parse_page_number(view.asked.get("page", "1"))
    for name in ("model", "experiment"):
        found = [run for run in found if run[name] == view.asked.get(name, run[name])]
    entries, pages = run_pages.page_of(found, page)
    return {"runs": entries, "page": page, "pages": pages}


@_at(f"{ROOT}/runs/{{run_id}}", "runs")
def launch(view: View, at: Parts) -> Row:
    """All that one launch opened."""
    found = find_runs(view.db, at["run_id"])
    return {"runs": rows_of(view.db, _at_work(view), found)}


# Before the run of a model: `failures` is no model.
@_at(f"{ROOT}/runs/{{run_id}}/failures")
def launch_failures(view: View, at: Parts) -> Row:
    """What failed in a run, of all its models: totals, and each failure with what is known."""
    found = find_runs(view.db, at["run_id"])
    return failures_document(view.db, found, at_work=_at_work(view))


@_at(RUN, "outcomes")
def run(view: View, at: Parts) -> Row:
    """One run with its categories, steps and outcomes."""
    found = _run(view, at)
    (about,) = rows_of(view.db, _at_work(view), [found])
    return {"run": about, "outcomes": run_pages.outcomes(view, about)}


@_at(f"{RUN}/failures")
def failures(view: View, at: Parts) -> Row:
    """What failed in a run of one model."""
    return failures_document(view.db, [_run(view, at)], at_work=_at_work(view))


@_at(f"{RUN}/items", show=f"One of {', '.join(run_pages.SHOWN)}.", page=PAGE)
def items(view: View, at: Parts) -> Row:
    """The items of a run as they went."""
    found = _run(view, at)
    shown = {"show": view.asked.get("show", "all"), "page": view.asked.get("page", "1")}
    made = run_pages.items(view, {"run_id": found.run_id, "model": found.model, **shown}).shown
    return {"items": made["entries"], "page": made["page"], "pages": made["pages"]}


@_at(f"{RUN}/items/{{suite}}/{{item_id}}")
def item(view: View, at: Parts) -> Row:
    """An item in a run: prompt, reply, files, reference, grader, verdicts and steps."""
    found = _run(view, at)
    key = planned(view, found.run_id, found.model, at["suite"], at["item_id"])
    chosen = Chosen(found.run_id, found.model, key)
    return debug_document(look_into(view.db, view.settings, view.journal, chosen))


@_at(f"{ROOT}/benchmark-versions", "benchmark_versions")
def benchmark_versions(view: View, at: Parts) -> Row:
    """Every benchmark version."""
    return {"benchmark_versions": all_versions(view)}


@_at(
    f"{ROOT}/compare",
    a="A model, the first characters of a run's id, or model@run.",
    b="The other one.",
    experiment="Of the models; by default that of the settings.",
    judge="By whose verdicts; by default the official one.",
)
def compare(view: View, at: Parts) -> Row:
    """Two models or runs, paired item by item."""
    one, other = view.asked.get("a"), view.asked.get("b")
    if not (one and other):
        raise AskedError("Name two models or runs: ?a=…&b=…")
    found = two_sides(view, one, other)
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


def _at_work(view: View) -> list[str]:
    return [one.run_id for one in view.tail.at_work()]


def _run(view: View, at: Parts) -> FoundRun:
    """Return the run; `latest` and the first characters of its id name it too."""
    name = find_model(view, at["model"])
    for one in find_runs(view.db, at["run_id"]):
        if one.model == name:
            return one
    raise NotThereError(f"There is no run {at['run_id']} of {name}.")
