"""The routes for runs evaluated elsewhere as OpenAPI describes them, made from the records."""

from typing import Any, NamedTuple

from pydantic.json_schema import JsonSchemaMode, models_json_schema

from eval_pipeline.coding.records import CodingTask
from eval_pipeline.record import Record
from eval_pipeline.records import BenchmarkVersion, ExamQuestion
from eval_pipeline.remote.messages import (
    ClosedRun,
    Judgements,
    KeptVersion,
    OpenedRun,
    Predictions,
    Received,
    Refusal,
    RunToOpen,
)
from eval_pipeline.remote.routes import JSON, LINES, OF_A_RUN, RUNS_PATH, VERSIONS_PATH

SCHEMES = {"bearer": {"type": "http", "scheme": "bearer"}}
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
_LINES = (BenchmarkVersion, ExamQuestion, CodingTask)


class _Operation(NamedTuple):
    """What one route takes and answers."""

    name: str
    summary: str
    body: type[Record] | None
    answer: type[Record]
    opens: bool = False


_OPERATIONS = {
    VERSIONS_PATH: _Operation(
        "keepBenchmarkVersion",
        "Keep a benchmark version. The first line is the version, each of the others an item of "
        "its suites; those whose items are here need none. The hashes have to be right.",
        None,
        KeptVersion,
        opens=True,
    ),
    RUNS_PATH: _Operation(
        "openRun",
        "Open a run of a version that is here; again with the same content changes nothing.",
        RunToOpen,
        OpenedRun,
        opens=True,
    ),
    f"{OF_A_RUN}/predictions": _Operation(
        "postPredictions",
        "Keep replies, each once by its prediction_id; all of them or none.",
        Predictions,
        Received,
    ),
    f"{OF_A_RUN}/judgements": _Operation(
        "postJudgements",
        "Keep verdicts on replies that are here, each once by prediction_id, judge, judge_version "
        "and finished_at; all of them or none.",
        Judgements,
        Received,
    ),
    f"{OF_A_RUN}/close": _Operation(
        "closeRun", "Show the run with what it has by now; more may follow.", None, ClosedRun
    ),
}


def described() -> dict[str, Any]:
    """The `paths` and `components` of an OpenAPI document."""
    return {
        "paths": {path: {"post": _described(path, one)} for path, one in _OPERATIONS.items()},
        "components": {"schemas": _schemas(), "securitySchemes": SCHEMES},
    }


def _schemas() -> dict[str, Any]:
    taken: list[type[Record]] = [*_LINES, *(one.body for one in _OPERATIONS.values() if one.body)]
    said: list[type[Record]] = [Refusal, *(one.answer for one in _OPERATIONS.values())]
    records = dict.fromkeys([*taken, *said])
    # All of them are taken in by somebody: what a record leaves out has its default there.
    models: list[tuple[type[Record], JsonSchemaMode]] = [(one, "validation") for one in records]
    _, definitions = models_json_schema(models, ref_template=REFERENCE)
    schemas: dict[str, Any] = definitions["$defs"]
    return schemas


def _described(path: str, operation: _Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "security": [{name: []} for name in SCHEMES],
        "responses": _responses(operation),
    }
    if path.startswith(OF_A_RUN):
        described["parameters"] = [_parameter("run_id"), _parameter("model")]
    if body := _body(path, operation):
        described["requestBody"] = {"required": True, "content": body}
    return described


def _responses(operation: _Operation) -> dict[str, Any]:
    answer = _in_json(operation.answer)
    done = {"200": {"description": "Done, or known already.", "content": answer}}
    if operation.opens:
        done["201"] = {"description": "New.", "content": answer}
    refused = {
        status: {"description": why, "content": _in_json(Refusal)}
        for status, why in REFUSALS.items()
    }
    return {**done, **refused}


def _parameter(name: str) -> dict[str, Any]:
    spelling = "Letters, digits, _ - and . are themselves, all else is =XX: a slash is =2F."
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": spelling,
        "schema": {"type": "string"},
    }


def _body(path: str, operation: _Operation) -> dict[str, Any] | None:
    if path == VERSIONS_PATH:
        return {LINES: {"schema": {"anyOf": [_reference(one) for one in _LINES]}}}
    return _in_json(operation.body) if operation.body else None


def _in_json(record: type[Record]) -> dict[str, Any]:
    return {JSON: {"schema": _reference(record)}}


def _reference(record: type[Record]) -> dict[str, str]:
    return {"$ref": REFERENCE.format(model=record.__name__)}
