"""Projects on a Convex backend: what it is asked, and that nobody else gets its key."""

import asyncio
from functools import cache
from typing import NamedTuple

import pytest
from pydantic import SecretStr

from eval_pipeline.evaluation.grading import with_backend
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.settings.sections import Coding
from eval_pipeline.suites.coding.judge import CodeJudge, Graded
from eval_pipeline.suites.coding.toolchains.base import ToolchainError
from eval_pipeline.suites.coding.toolchains.convex.backend import Ask, Backend, is_nobodys_fault
from eval_pipeline.suites.coding.toolchains.convex.toolchain import Convex
from eval_pipeline.suites.coding.toolchains.registry import TOOLCHAINS
from eval_pipeline_tests.coding_stand import DATA, a_sandbox, prepared
from eval_pipeline_tests.convex_server import Server, a_server
from eval_pipeline_tests.convex_stand import checkout_tasks, needs_tools

KEY = "instance|0123456789abcdef"
GRADER = """import { expect, test } from "vitest";
import { anyApi } from "convex/server";
import { as, client, rows, sameFunctions, sameSchema, siteUrl } from "../../../grader";

test("anybody may call what is public", async () => {
  expect(await client.query(anyApi.guests.list, {})).toEqual(["Zoe", "Ada"]);
  await expect(client.query(anyApi.guests.nothing, {})).rejects.toThrow(/public function/);
});

test("an admin sees tables", async () => {
  expect(await rows("guests")).toEqual([{ name: "Zoe" }]);
});

test("somebody may be acted for", async () => {
  expect(await as("ada").mutation(anyApi.guests.sign, { name: "Ada", seats: 1 })).toBe("an id");
});

test("the site is there", async () => {
  expect((await fetch(`${siteUrl}/ring`, { method: "POST", body: "{}" })).status).toBe(202);
});

test("it is compared with the reference", async () => {
  await sameSchema();
  await sameFunctions();
});

test("an admin may ask in its own words", async () => {
  const post = async (path: string, headers: Record<string, string>, body: object) =>
    await fetch(`http://localhost:${process.env.CONVEX_PORT}/api/${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
  const bundle = { path: "probe.js", source: "" };
  const told = await post("run_test_function", {}, { adminKey: "theirs", args: {}, bundle });
  expect((await told.json()).value).toBe(7);
  await post("update_environment_variables", { Authorization: "Convex theirs" }, { changes: [] });
});

test("nothing here knows a key", () => {
  expect(JSON.stringify(process.env)).not.toContain("0123456789abcdef");
});
"""
SAYS = {
    "_system/frontend/getSchemas": {"active": '{"tables": [{"tableName": "guests"}]}'},
    "_system/frontend/listTableScan": [{"name": "Zoe"}],
    "_system/frontend/clearTablePage": {"deleted": 1, "continueCursor": None, "hasMore": False},
    "_system/cli/modules:apiSpec": [{"identifier": "guests.js:list"}],
    "guests:list": ["Zoe", "Ada"],
    "guests:sign": "an id",
}


class Came(NamedTuple):
    """What became of the reference, and what the backend was asked meanwhile."""

    graded: Graded
    server: Server


def a_task() -> CodingTask:
    task = checkout_tasks()["000-basics/000-guest_book"]
    grader = {**task.grader, f"evals/{task.id}/grader.test.ts": GRADER}
    config = task.config.model_copy(update={"steps": ("deploy", "tests")})
    return task.model_copy(update={"grader": grader, "config": config})


@cache
def came() -> Came:
    needs_tools()
    prepared("convex")

    async def grade(server: Server) -> Graded:
        backend = Backend.at(server.url, server.url, SecretStr(KEY))
        tools = {**TOOLCHAINS, "convex": Convex(server=backend)}
        judge = CodeJudge(a_sandbox(), DATA, asyncio.Semaphore(1), fresh=True, toolchains=tools)
        return await judge.grade(a_task(), a_task().answer)

    with a_server(**SAYS) as server:
        return Came(asyncio.run(grade(server)), server)


def test_a_project_is_deployed_and_its_graders_ask_the_backend() -> None:
    graded = came().graded

    assert graded.score == 1.0, graded.reason
    assert [(step.name, step.status) for step in graded.code.steps] == [
        ("filesystem", "passed"),
        ("deploy", "passed"),
        ("tests", "passed"),
    ]
    assert graded.code.backend == "self-hosted"


def test_documents_of_the_one_before_are_deleted_before_the_next_is_deployed() -> None:
    names = came().server.names()

    assert names.index("_system/frontend/clearTablePage") < names.index("/api/deploy2/start_push")
    # For the step, for the reference that is compared with, and for the tests.
    assert names.count("/api/deploy2/finish_push") == 3


def test_the_key_goes_along_only_where_an_admin_asks() -> None:
    server = came().server

    assert server.keys_of("guests:list") == {""}
    assert server.keys_of("/ring") == {""}
    assert server.keys_of("_system/frontend/listTableScan") == {f"Convex {KEY}"}
    assert server.keys_of("/api/deploy2/start_push") == {f"Convex {KEY}"}
    assert server.keys_of("/api/update_environment_variables") == {f"Convex {KEY}"}
    assert server.keys_of("/api/run_test_function") == {KEY}
    (acting,) = server.keys_of("guests:sign")
    assert acting.startswith(f"Convex {KEY}:")


def test_the_key_is_in_nothing_that_is_kept() -> None:
    assert KEY not in came().graded.code.model_dump_json()
    assert KEY not in repr(Backend.at("http://127.0.0.1:3210", None, SecretStr(KEY)))


def test_http_actions_are_at_the_next_port_unless_it_is_said() -> None:
    key = SecretStr(KEY)

    assert Backend.at("http://127.0.0.1:3210", None, key).site_url == "http://127.0.0.1:3211"
    assert Backend.at("http://x:1", "http://y:7", key).site_url == "http://y:7"


@pytest.mark.parametrize("path", ["//elsewhere/api", "http://elsewhere/", "@elsewhere/"])
def test_graders_reach_the_backend_and_nobody_else(path: str) -> None:
    backend = Backend.at("http://127.0.0.1:9", None, SecretStr(KEY))
    ask = Ask(to="cloud", method="GET", path=path, as_admin=True)

    said = asyncio.run(backend.answer(ask))

    assert said["status"] == 400


@pytest.mark.parametrize(
    ("said", "is_so"),
    [
        ("TypeError: fetch failed: ECONNREFUSED 127.0.0.1:3210", True),
        ("timed out after 90 s", True),
        ("Error: getaddrinfo EAI_AGAIN backend", True),
        ("HTTP 429", True),
        ("evals/007-components/008-rate_limit: rate limit is not defined", False),
        ("Schema validation failed: table guests", False),
    ],
)
def test_what_happens_on_the_way_is_not_the_answers_fault(said: str, *, is_so: bool) -> None:
    assert is_nobodys_fault(said) == is_so


def test_a_backend_without_a_key_is_refused_in_a_sentence() -> None:
    settings = Coding(convex_url="http://127.0.0.1:3210")

    with pytest.raises(ToolchainError, match=r"into \.env, as EVALS_CONVEX_ADMIN_KEY"):
        with_backend(settings, None)

    assert with_backend(Coding(), None) is TOOLCHAINS
