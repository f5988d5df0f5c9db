"""The description of the API as OpenAPI: schemas come from the records and from the queries."""

import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from pydantic.json_schema import models_json_schema

from eval_pipeline.interop.remote.messages import JSON, OF_A_RUN, Refusal
from eval_pipeline.records.base import Record
from eval_pipeline.results.queries import query
from eval_pipeline.web.api import DOCUMENTS, ROOT, Document
from eval_pipeline.web.routes import Page, Parts, View
from eval_pipeline.web.runs_api import WRITES, Write

Schema = dict[str, Any]
ADDRESS = f"{ROOT}/openapi.json"
ABOUT = (
    "Results as JSON. In addresses, names of models, suites and items are spelled with letters, "
    "digits, _, - and . only; every other byte is = and two hexadecimal digits, so that "
    "vendor/model is vendor=2Fmodel. For a run's id its first characters are enough to read, and "
    "so is `latest`. Times are UTC."
)
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
    return Page("api.html", "API", openapi(view, at))


def describe_writes() -> Schema:
    """Return the `paths` and `components` of the routes for remote runs."""
    # Clients send all of them: what a record leaves out has its default there.
    records: set[type[Record]] = {Refusal}
    for one in WRITES:
        records |= {*one.taken, one.answered}
    _, definitions = models_json_schema(
        [(record, "validation") for record in sorted(records, key=str)], ref_template=REFERENCE
    )
    return {
        "paths": {one.path: {"post": _write(one)} for one in WRITES},
        "components": {
            "schemas": definitions["$defs"],
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _write(one: Write) -> Schema:
    done = {"200": "Done, or known already."}
    if not one.path.startswith(OF_A_RUN):
        done["201"] = "New."
    responses = {
        **{status: _response(about, _reference(one.answered)) for status, about in done.items()},
        **{status: _response(about, _reference(Refusal)) for status, about in REFUSALS.items()},
    }
    described = _operation(one.path, one.name, one.answer.__doc__, responses)
    if one.taken:
        schemas = [_reference(record) for record in one.taken]
        schema = {"anyOf": schemas} if len(schemas) > 1 else schemas[0]
        content = {one.media_type: {"schema": schema}}
        described["requestBody"] = {"required": True, "content": content}
    return {**described, "security": [{"bearer": []}]}


def _read(view: View, one: Document) -> Schema:
    schema = {"type": "object", "properties": {name: _rows(view, name) for name in one.parts}}
    responses = {
        "200": _response("What there is.", schema),
        "404": {"description": "There is no such thing; `error` says what is missing."},
    }
    return _operation(one.address, one.make.__name__, one.make.__doc__, responses, one.asked)


def _operation(
    path: str,
    name: str,
    about: str | None,
    responses: Schema,
    asked: Mapping[str, str] | None = None,
) -> Schema:
    in_path = re.findall(r"\{(\w+)\}", path)
    return {
        "operationId": name,
        "summary": " ".join((about or "").split()),
        "parameters": [
            *(_parameter(part, "path", GIVEN[part]) for part in in_path),
            *(_parameter(part, "query", words) for part, words in (asked or {}).items()),
        ],
        "responses": responses,
    }


def _response(about: str, schema: Schema) -> Schema:
    return {"description": about, "content": {JSON: {"schema": schema}}}


def _reference(record: type[Record]) -> Schema:
    return {"$ref": REFERENCE.format(model=record.__name__)}


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
