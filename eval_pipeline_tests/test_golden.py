"""Golden files of what users and programs rely on: commands, schema, API, assets, the demo.

After a change on purpose: `UPDATE_GOLDEN=1 .venv/bin/pytest eval_pipeline_tests/test_golden.py`.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest
import typer
from starlette.testclient import TestClient

from eval_pipeline.cli.main import app
from eval_pipeline.definitions import build_definitions
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.results.schema import create_schema
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import load_benchmark
from eval_pipeline.suites.coding.toolchains.registry import TOOLCHAINS
from eval_pipeline.web.app import build_app
from eval_pipeline_tests.coding_stand import lend_toolchains
from eval_pipeline_tests.project import ROOT, a_project, call
from eval_pipeline_tests.viewed import a_viewed_project

GOLDEN = Path(__file__).parent / "golden"
PARAMETER = (
    *("name", "opts", "secondary_opts", "required", "multiple", "default"),
    *("is_flag", "metavar", "envvar", "hidden", "help"),
)
VARYING = re.compile(
    r"metrics\w*\.bootstrap_(low|high)|\w+\."
    r"(.*_at|run_ids?(_[ab])?|prediction_ids?|launch(_id)?|snapshot|generation_id|seconds"
    r"|(.*latency|.*first_token|.*generation).*_s|output_tokens_per_s|stale_days)"
)
"""The columns with times and random ids, and what is drawn by these: each run has its own."""
ELAPSED = re.compile(r"\bin \d+\.\d\ds\b")
"""How long pytest took, which the output of a step says."""
HEAD, WIDTH = 5, 80
CODING = """
[[suites]]
name = "coding"
kind = "coding"
path = "{root}/evals"
only = "-parsing/001-"
"""


def agree(name: str, lines: Iterable[str]) -> None:
    """Asserts that the golden file has these lines; or writes them, if that is asked for."""
    text = "\n".join(lines) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        (GOLDEN / name).write_text(text, "utf-8")
    assert text.splitlines() == (GOLDEN / name).read_text("utf-8").splitlines()


def commands(command: Any, path: str) -> Iterator[str]:
    """One command with its parameters, and then those below it."""
    yield f"{path}: {' '.join((command.help or '').split())}"
    for one in sorted(command.params, key=lambda one: str(one.name)):
        facts = {name: getattr(one, name, None) for name in PARAMETER}
        said = {name: str(fact) for name, fact in facts.items() if fact not in (None, False, [])}
        yield f"    {one.param_type_name} {said.pop('name')} {json.dumps(said, ensure_ascii=False)}"
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from commands(inner, f"{path} {name}")


def test_commands() -> None:
    agree("commands.txt", commands(typer.main.get_command(app), "evals"))


def test_schema() -> None:
    with duckdb.connect() as db:
        create_schema(db)
        views = {name for (name,) in db.sql("select view_name from duckdb_views()").fetchall()}
        found = db.sql(
            "select table_name, column_name, data_type from duckdb_columns() "
            "where not internal order by table_name, column_index"
        ).fetchall()

    kinds = {True: "view", False: "table"}
    agree("schema.txt", (f"{kinds[one[0] in views]} {' '.join(one)}" for one in found))


def operations(document: dict[str, Any]) -> Iterator[str]:
    """One line for each operation, and one for each schema."""
    for path, methods in sorted(document["paths"].items()):
        for method, one in sorted(methods.items()):
            given = sorted(f"{p['in']} {p['name']}" for p in one.get("parameters", ()))
            body = sorted(one.get("requestBody", {}).get("content", {}))
            yield f"{method.upper()} {path}: {given} {body} -> {sorted(one['responses'])}"
            for status, response in sorted(one["responses"].items()):
                for kind, content in sorted(response.get("content", {}).items()):
                    yield f"    {status} {kind} {' '.join(names(content['schema']))}"
    for name, schema in sorted(document["components"]["schemas"].items()):
        yield f"schema {name}: {' '.join(names(schema))}"


def names(schema: dict[str, Any]) -> list[str]:
    """The names of a schema's properties, or of the one that it refers to; of lists, the rows'."""
    if "$ref" in schema:
        return [schema["$ref"].rsplit("/")[-1]]
    inner = schema.get("properties", {})
    found = [(name, one.get("items", {}).get("properties")) for name, one in sorted(inner.items())]
    return [f"{name}[{' '.join(sorted(rows))}]" if rows else name for name, rows in found]


def test_api(tmp_path: Path) -> None:
    settings = a_viewed_project(tmp_path)
    with TestClient(build_app(settings), base_url="http://127.0.0.1") as client:
        document = client.get("/api/v1/openapi.json").json()

    agree("api.txt", operations(document))


def graph(defs: dg.Definitions) -> Iterator[str]:
    """The assets with their checks, then what starts them."""
    checks = [(key.asset_key, key.name) for key in defs.resolve_asset_graph().asset_check_keys]
    for spec in sorted(defs.resolve_all_asset_specs(), key=lambda spec: spec.key):
        yield f"asset {spec.key.to_user_string()}"
        yield f"    deps: {sorted(dep.asset_key.to_user_string() for dep in spec.deps)}"
        yield f"    group: {spec.group_name}, kinds: {sorted(spec.kinds)}"
        yield f"    partitions: {spec.partitions_def}"
        yield f"    automated: {spec.automation_condition is not None}"
        yield f"    checks: {sorted(name for key, name in checks if key == spec.key)}"
    yield f"jobs: {sorted(job.name for job in defs.resolve_all_job_defs())}"
    yield f"schedules: {sorted(one.name for one in defs.schedules or ())}"
    yield f"sensors: {sorted(one.name for one in defs.sensors or ())}"


def test_assets(tmp_path: Path) -> None:
    settings = Settings.from_env({"EVALS_SETTINGS": f"{a_project(tmp_path)}/eval_pipeline.toml"})

    agree("assets.txt", graph(build_definitions(settings)))


def versions(settings: Settings) -> Iterator[str]:
    """The hashes by which earlier results are known to be comparable."""
    benchmark = load_benchmark(settings)
    version = benchmark.version
    yield f"benchmark_version {version.benchmark_version}"
    yield f"answer_prompt_hash {version.answer_prompt_hash}"
    yield f"judge_prompt_hash {version.judge_prompt_hash}"
    yield from (f"suite {one.suite} {one.items} {one.suite_version}" for one in version.suites)
    yield from (f"toolchain {name} {one.version}" for name, one in sorted(TOOLCHAINS.items()))
    tasks = (one for one in map(benchmark.items.__getitem__, benchmark.items))
    graded = sorted((one.id, one.grader_version) for one in tasks if isinstance(one, CodingTask))
    yield from (f"task {' '.join(one)}" for one in graded)


def test_versions(tmp_path: Path) -> None:
    own = {"EVALS_SETTINGS": f"{ROOT}/eval_pipeline.toml", "EVALS_DATA_DIR": str(tmp_path)}
    settings = Settings.from_env(own)

    agree("versions.txt", versions(settings))


@pytest.mark.timeout(900)
def test_demo(tmp_path: Path) -> None:
    """The demo with one of its coding tasks; the others would be graded for minutes."""
    project = a_project(tmp_path)
    with (project / "eval_pipeline.toml").open("a", encoding="utf-8") as file:
        file.write(CODING.format(root=ROOT))
    lend_toolchains(project / "data")
    done = call(project, "evals run")
    assert done.returncode == 0, done.stderr

    shown = call(project, "evals leaderboard").stdout
    agree("leaderboard.txt", (line.rstrip() for line in shown.splitlines()))
    with duckdb.connect(project / "data" / "evals.duckdb", read_only=True) as db:
        agree("demo.txt", tables(db))


def tables(db: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Yield, per table and view, each column's hash (in any order) and the first rows."""
    found = db.sql(
        "select table_name from information_schema.tables where table_name <> 'schema_migrations'"
    ).fetchall()
    for (table,) in sorted(found):
        rows = db.sql(f'from "{table}"')
        places = enumerate(f"{table}.{name}" for name in rows.columns)
        kept = [place for place, name in places if not VARYING.fullmatch(name)]
        lines = [[plain(row[place]) for place in kept] for row in rows.fetchall()]
        yield f"{table}: {len(lines)} rows, {hashed(map(json.dumps, lines))}"
        for column, place in enumerate(kept):
            values = [line[column] for line in lines]
            yield f"    {rows.columns[place]}: {len(set(values))} values, {hashed(values)}"
        for line in sorted(lines)[:HEAD]:
            yield f"    {json.dumps([value[:WIDTH] for value in line], ensure_ascii=False)}"


def plain(value: Any) -> str:
    """A value as short text; of a number, the digits that do not hang on the order of summing."""
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, dict):
        return str({key: plain(one) for key, one in sorted(value.items())})
    if isinstance(value, list):
        return str([plain(one) for one in value])
    return ELAPSED.sub("in N s", str(value))


def hashed(values: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(values)).encode()).hexdigest()[:12]
