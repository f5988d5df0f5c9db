"""The description of the API as OpenAPI: schemas come from the records and from the queries."""

import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, NamedTuple

from pydantic.json_schema import JsonSchemaMode, models_json_schema

from eval_pipeline.interop.remote.messages import (
    JSON,
    LINES,
    OF_A_RUN,
    RUNS_PATH,
    VERSIONS_PATH,
    ClosedRun,
    Judgements,
    KeptVersion,
    OpenedRun,
    Predictions,
    Received,
    Refusal,
    RunToOpen,
)
from eval_pipeline.records.base import Record
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import BenchmarkVersion, ExamQuestion
from eval_pipeline.results.queries import query
from eval_pipeline.web.api import DOCUMENTS, ROOT, Document
from eval_pipeline.web.routes import Page, Parts, View

Schema = dict[str, Any]
ADDRESS = f"{ROOT}/openapi.json"
ABOUT = (
    "Results as JSON. In addresses, names of models, suites and items are spelled with letters, "
    "digits, _, - and . only; every other byte is = and two hexadecimal digits, so that "
    "vendor/model is vendor=2Fmodel. For a run's id its first characters are enough to read, and "
    "so is `latest`. Times are UTC."
)
SPELLING = "Letters, digits, _ - and . are themselves, all else is =XX: a slash is =2F."
GIVEN = {
    "run_id": "The run's id.",
    "model": "The model, spelled.",
    "suite": "The suite, spelled.",
    "item_id": "The item, spelled.",
}
ROWS_OF: Mapping[str, tuple[str, dict[str, Any] | None]] = {
    "leaderboard": ("viewer/leaderboard", {"suite": None, "category": None}),
    "left_out": ("summaries/left_out", None),
    "models": ("summaries/models", None),
    "benchmark_versions": ("summaries/versions_in_full", None),
    "runs": (
        "summaries/run_states",
        {"run_id": None, "model": None, "latest": False, "at_work": [], "judges": []},
    ),
    "outcomes": ("viewer/outcomes", {"run_id": "", "model": ""}),
}
"""The parts of documents that are the rows of a query."""
TYPES = (
    (r".*\[\d*\]", {"type": "array"}),
    (r"(STRUCT|MAP).*", {"type": "object"}),
    (r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?", {"type": "integer"}),
    (r"DOUBLE|FLOAT|DECIMAL.*", {"type": "number"}),
    (r"BOOLEAN", {"type": "boolean"}),
    (r"TIMESTAMP.*", {"type": "string", "format": "date-time"}),
)
REFERENCE = "#/components/schemas/{model}"
REFUSALS = {
    "401": "Without a token, or with one that is not valid.",
    "403": "The token has not the scope that writing needs here.",
    "404": "There is no such run.",
    "409": "Something else is here under this name, or somebody is at work on it: see Retry-After.",
    "413": "More than is taken at once.",
    "415": "Of another type, or packed with something else than gzip.",
    "422": "Something in it is wrong, and nothing of it was kept; the sentence says what.",
    "503": "The server can not do it now.",
}


class _Write(NamedTuple):
    """A route for remote runs: the records it takes, one of them, and the one it answers."""

    path: str
    name: str
    summary: str
    taken: tuple[type[Record], ...]
    answer: type[Record]
    media_type: str = JSON


WRITES = (
    _Write(
        VERSIONS_PATH,
        "keepBenchmarkVersion",
        "Keep a benchmark version. The first line is the version, each of the others an item of "
        "its suites; those whose items are here need none. The hashes have to be right.",
        (BenchmarkVersion, ExamQuestion, CodingTask),
        KeptVersion,
        LINES,
    ),
    _Write(
        RUNS_PATH,
        "openRun",
        "Open a run of a version that is here; again with the same content changes nothing.",
        (RunToOpen,),
        OpenedRun,
    ),
    _Write(
        f"{OF_A_RUN}/predictions",
        "postPredictions",
        "Keep replies, each once by its prediction_id; all of them or none.",
        (Predictions,),
        Received,
    ),
    _Write(
        f"{OF_A_RUN}/judgements",
        "postJudgements",
        "Keep verdicts on replies that are here, each once by prediction_id, judge, judge_version "
        "and finished_at; all of them or none.",
        (Judgements,),
        Received,
    ),
    _Write(
        f"{OF_A_RUN}/close",
        "closeRun",
        "Show the run with what it has by now; more may follow.",
        (),
        ClosedRun,
    ),
)


def openapi(view: View, _: Parts) -> Schema:
    """Return the whole description, the routes for remote runs included."""
    writing = describe_writes()
    paths = {one.address: {"get": _read(view, one)} for one in DOCUMENTS}
    for path, operations in writing["paths"].items():
        paths[path] = {**paths.get(path, {}), **operations}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "eval_pipeline",
            "version": version("eval-pipeline"),
            "description": ABOUT,
        },
        "servers": [{"url": "../.."}],
        "paths": paths,
        "components": writing["components"],
        **({} if view.settings.web.public else {"security": [{"bearer": []}]}),
    }


def documentation(view: View, at: Parts) -> Page:
    """Show the description as a page."""
    document = openapi(view, at)
    operations = [
        (address, method, one)
        for address, methods in sorted(document["paths"].items())
        for method, one in methods.items()
    ]
    return Page("api.html", "API", {"info": document["info"], "operations": operations})


def describe_writes() -> Schema:
    """Return the `paths` and `components` of the routes for remote runs."""
    # Clients send all of them: what a record leaves out has its default there.
    models: dict[tuple[type[Record], JsonSchemaMode], None] = {}
    for one in WRITES:
        models |= {(record, "validation"): None for record in (*one.taken, one.answer)}
    models[Refusal, "validation"] = None
    _, definitions = models_json_schema(list(models), ref_template=REFERENCE)
    return {
        "paths": {one.path: {"post": _write(one)} for one in WRITES},
        "components": {
            "schemas": definitions["$defs"],
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _write(one: _Write) -> Schema:
    answer = {JSON: {"schema": _reference(one.answer)}}
    refusal = {JSON: {"schema": _reference(Refusal)}}
    of_a_run = one.path.startswith(OF_A_RUN)
    done = {"200": "Done, or known already."} | ({} if of_a_run else {"201": "New."})
    described: Schema = {
        "operationId": one.name,
        "summary": one.summary,
        "security": [{"bearer": []}],
        "responses": {
            status: {"description": why, "content": answer} for status, why in done.items()
        }
        | {status: {"description": why, "content": refusal} for status, why in REFUSALS.items()},
    }
    if of_a_run:
        described["parameters"] = [
            _parameter(name, "path", SPELLING) for name in ("run_id", "model")
        ]
    if one.taken:
        schemas = [_reference(record) for record in one.taken]
        schema = {"anyOf": schemas} if len(schemas) > 1 else schemas[0]
        content = {one.media_type: {"schema": schema}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _reference(record: type[Record]) -> Schema:
    return {"$ref": REFERENCE.format(model=record.__name__)}


def _read(view: View, one: Document) -> Schema:
    in_path = re.findall(r"\{(\w+)\}", one.address)
    schema = {"type": "object", "properties": {name: _rows(view, name) for name in one.parts}}
    return {
        "operationId": one.make.__name__,
        "summary": one.make.__doc__,
        "parameters": [
            *(_parameter(name, "path", GIVEN[name]) for name in in_path),
            *(_parameter(name, "query", about) for name, about in one.asked.items()),
        ],
        "responses": {
            "200": {"description": "What there is.", "content": {JSON: {"schema": schema}}},
            "404": {"description": "There is no such thing; `error` says what is missing."},
        },
    }


def _parameter(name: str, place: str, about: str) -> Schema:
    required = {"required": True} if place == "path" else {}
    schema = {"type": "string"}
    return {"name": name, "in": place, **required, "description": about, "schema": schema}


def _rows(view: View, name: str) -> Schema:
    found = query(view.db, *ROWS_OF[name])
    columns = dict(zip(found.columns, map(_type, map(str, found.types)), strict=True))
    return {"type": "array", "items": {"type": "object", "properties": columns}}


def _type(name: str) -> Schema:
    """Return the JSON type of a type of DuckDB; any value may be missing."""
    known = next((kind for pattern, kind in TYPES if re.fullmatch(pattern, name)), None)
    found = known or {"type": "string"}
    return {**found, "type": [found["type"], "null"]}
