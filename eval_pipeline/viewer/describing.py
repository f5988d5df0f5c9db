"""The API described as OpenAPI, and that as a page; the columns are those of the queries."""

import re
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

from eval_pipeline.remote.openapi import described
from eval_pipeline.results.queries import query
from eval_pipeline.viewer.api import DOCUMENTS, ROOT, Document
from eval_pipeline.viewer.page import Page, View

Schema = dict[str, Any]
ADDRESS = f"{ROOT}/openapi.json"
ABOUT = (
    "Results as JSON. In addresses, names of models, suites and items are spelled with letters, "
    "digits, _, - and . only; every other byte is = and two hexadecimal digits, so that "
    "vendor/model is vendor=2Fmodel. For a run's id its first characters are enough to read, and "
    "so is `latest`. Times are UTC."
)
_GIVEN = {
    "run_id": "The run's id.",
    "model": "The model, spelled.",
    "suite": "The suite, spelled.",
    "item_id": "The item, spelled.",
}
_LIST_OF: Mapping[str, tuple[str, dict[str, Any] | None]] = {
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
_PARTS: Mapping[str, tuple[str, ...]] = {
    "leaderboard": ("leaderboard", "left_out"),
    "models": ("models",),
    "model": ("runs",),
    "runs": ("runs",),
    "launch": ("runs",),
    "run": ("outcomes",),
    "benchmark_versions": ("benchmark_versions",),
}
_TYPES = (
    (r".*\[\d*\]", {"type": "array"}),
    (r"(STRUCT|MAP).*", {"type": "object"}),
    (r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?", {"type": "integer"}),
    (r"DOUBLE|FLOAT|DECIMAL.*", {"type": "number"}),
    (r"BOOLEAN", {"type": "boolean"}),
    (r"TIMESTAMP.*", {"type": "string", "format": "date-time"}),
)


def openapi(view: View) -> Schema:
    """The whole API, with the part of it for remote runners."""
    writing = described()
    addresses = {one.address: {"get": _operation(view, one)} for one in DOCUMENTS}
    for address, operations in writing["paths"].items():
        addresses[address] = {**addresses.get(address, {}), **operations}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "eval_pipeline",
            "version": version("eval-pipeline"),
            "description": ABOUT,
        },
        "servers": [{"url": "../.."}],
        "paths": addresses,
        "components": writing["components"],
        **({} if view.settings.web.public else {"security": [{"bearer": []}]}),
    }


def documentation(view: View) -> Page:
    """The same for people."""
    document = openapi(view)
    operations = [
        (address, method, one)
        for address, methods in sorted(document["paths"].items())
        for method, one in methods.items()
    ]
    return Page("api.html", "API", {"info": document["info"], "operations": operations})


def _operation(view: View, one: Document) -> Schema:
    schema = {"application/json": {"schema": _schema(view, one)}}
    return {
        "operationId": one.make.__name__,
        "summary": one.summary,
        "parameters": [*_in_path(one), *_in_query(one)],
        "responses": {
            "200": {"description": "What there is.", "content": schema},
            "404": {"description": "There is no such thing; `error` says what is missing."},
        },
    }


def _in_path(one: Document) -> Iterator[Schema]:
    for name in re.findall(r"\{(\w+)\}", one.address):
        described = {"description": _GIVEN[name], "schema": {"type": "string"}}
        yield {"name": name, "in": "path", "required": True, **described}


def _in_query(one: Document) -> Iterator[Schema]:
    for name, words in one.asked.items():
        yield {"name": name, "in": "query", "description": words, "schema": {"type": "string"}}


def _schema(view: View, one: Document) -> Schema:
    parts = {name: _rows(view, name) for name in _PARTS.get(one.make.__name__, ())}
    return {"type": "object", "properties": parts}


def _rows(view: View, name: str) -> Schema:
    asked, given = _LIST_OF[name]
    found = query(view.db, asked, given)
    columns = dict(zip(found.columns, map(_type, map(str, found.types)), strict=True))
    return {"type": "array", "items": {"type": "object", "properties": columns}}


def _type(name: str) -> Schema:
    """What JSON has for a type of DuckDB; any value may be missing."""
    known = next((kind for pattern, kind in _TYPES if re.fullmatch(pattern, name)), None)
    found = known or {"type": "string"}
    return {**found, "type": [found["type"], "null"]}
