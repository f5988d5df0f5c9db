"""A Convex backend of one's own: projects are deployed to it, and graders ask it through us.

The admin key stays in this process and in the tool that deploys. Neither a sandbox nor an answer
gets it: graders say what they want to ask, and it is asked here.
"""

import asyncio
import json
import shutil
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx
from filelock import FileLock
from pydantic import SecretStr

from eval_pipeline.hashing import fingerprint
from eval_pipeline.processes import without_keys
from eval_pipeline.records.base import Record
from eval_pipeline.runtime import in_a_thread
from eval_pipeline.suites.coding.files import private_folder
from eval_pipeline.suites.coding.sandbox.base import SandboxError
from eval_pipeline.suites.coding.toolchains.convex import layout
from eval_pipeline.text import clean

KIND = "self-hosted"
URL, ADMIN_KEY = "CONVEX_SELF_HOSTED_URL", "CONVEX_SELF_HOSTED_ADMIN_KEY"
"""As Convex's own tool calls them. Ours are others: somebody's own backend may be in these."""
LONGEST_DEPLOY_S, LONGEST_CALL_S = 90.0, 60.0
LONGEST_BODY, LONGEST_OUTPUT = 8 << 20, 100_000
_NOBODYS_FAULT = (
    "timed out after",
    "econnrefused",
    "econnreset",
    "etimedout",
    "enotfound",
    "eai_again",
    "fetch failed",
    "too many requests",
    # Never "rate limit" by itself: a task may be about that.
    "status code 429",
    "http 429",
)
_PROBE = "/api/run_test_function"
"""Where a module is run that a grader brings; the key stands in what is asked there."""
_KEPT_HEADERS = ("content-type", "accept", "convex-client")


def is_nobodys_fault(said: str) -> bool:
    """Whether a deployment failed on the way to the backend, as far as words can tell."""
    lower = said.lower()
    return any(words in lower for words in _NOBODYS_FAULT)


class Ask(Record):
    """What a grader wants of the deployment: a request to its functions or to its site."""

    to: str
    method: str
    path: str
    headers: dict[str, str] = {}
    body: str = ""
    as_admin: bool = False
    identity: str = ""


@dataclass(frozen=True)
class Backend:
    """One deployment, which has one project at a time."""

    url: str
    site_url: str
    admin_key: SecretStr
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    def at(cls, url: str, site_url: str | None, key: SecretStr) -> Self:
        """HTTP actions are at the next port, as with Convex's own backend, unless it is said."""
        base = httpx.URL(url)
        beside = base.copy_with(port=(base.port or 3210) + 1)
        return cls(url, site_url or str(beside).rstrip("/"), key)

    @asynccontextmanager
    async def held(self, home: Path) -> AsyncIterator[None]:
        """For one answer at a time, whichever process of this machine has it graded."""
        name = f".backend-{fingerprint(self.url)}.lock"
        file = FileLock(home.parent / name, thread_local=False)
        async with self.lock:
            await in_a_thread(file.acquire)
            try:
                yield
            finally:
                file.release()

    async def deploy(self, project: Path, home: Path) -> tuple[bool, str]:
        """Deploy this project in place of another, of which no documents are left.

        Return whether it could be deployed, and what the tool said.
        """
        await self._clear()
        with private_folder("deploy") as folder:
            for name in ("convex", "package.json"):
                source = project / name
                copy = shutil.copytree if source.is_dir() else shutil.copyfile
                copy(source, folder / name)
            (folder / "node_modules").symlink_to((layout.built(home) / "node_modules").resolve())
            return await self._push(folder, layout.built(home))

    async def _clear(self) -> None:
        """Deletes all documents of the tables that the deployed schema has."""
        for table in [one["tableName"] for one in ((await self._schema()) or {}).get("tables", [])]:
            scan = {"table": table, "limit": 1}
            # A table that was never written to can not be cleared.
            more = bool(await self._call("query", "_system/frontend/listTableScan", scan))
            cursor = None
            while more:
                page = {"tableName": table, "cursor": cursor}
                told = await self._call("mutation", "_system/frontend/clearTablePage", page)
                cursor, more = told["continueCursor"], told["hasMore"]

    async def describe(self) -> str:
        """The schema and functions of what is deployed now, as graders compare them."""
        functions = await self._call("query", "_system/cli/modules:apiSpec", {})
        told = {"schema": await self._schema(), "functions": functions, "crons": []}
        return json.dumps(told)

    async def _schema(self) -> dict[str, Any] | None:
        name = "_system/frontend/getSchemas"
        active = (await self._call("query", name, {"componentId": None}))["active"]
        return json.loads(active) if active else None

    async def answer(self, ask: Ask) -> dict[str, Any]:
        """What the deployment says to a request, with the key along if the grader is admin."""
        base = self.url if ask.to == "cloud" else self.site_url
        headers = {name: text for name, text in ask.headers.items() if name in _KEPT_HEADERS}
        if ask.as_admin and ask.to == "cloud":
            identity = f":{b64encode(ask.identity.encode()).decode()}" if ask.identity else ""
            headers["authorization"] = f"Convex {self.admin_key.get_secret_value()}{identity}"
        if not ask.path.startswith("/") or ask.path.startswith("//"):
            return {"status": 400, "headers": {}, "body": ""}
        content = b64decode(ask.body)
        if ask.to == "cloud" and ask.path == _PROBE:
            content = self._with_key(content)
        try:
            async with httpx.AsyncClient(timeout=LONGEST_CALL_S, trust_env=False) as client:
                said = await client.request(
                    ask.method, f"{base}{ask.path}", headers=headers, content=content
                )
        except httpx.HTTPError as error:
            raise SandboxError(f"The Convex backend can not be asked: {error}.") from None
        return {
            "status": said.status_code,
            "headers": {"content-type": said.headers.get("content-type", "text/plain")},
            "body": b64encode(said.content[:LONGEST_BODY]).decode(),
        }

    def _with_key(self, content: bytes) -> bytes:
        """With ours in place of the one that graders know, of their own backends."""
        try:
            said = json.loads(content)
        except ValueError:
            return content
        known = isinstance(said, dict) and "adminKey" in said
        ours = {"adminKey": self.admin_key.get_secret_value()}
        return json.dumps({**said, **ours}).encode() if known else content

    async def _call(self, kind: str, name: str, args: dict[str, Any]) -> Any:
        """What one of the functions says that only an admin may call."""
        body = json.dumps({"path": name, "format": "json", "args": [args]}).encode()
        ask = Ask(
            to="cloud",
            method="POST",
            path=f"/api/{kind}",
            headers={"content-type": "application/json"},
            body=b64encode(body).decode(),
            as_admin=True,
        )
        said = await self.answer(ask)
        try:
            told = json.loads(b64decode(said["body"]))
            return told["value"]
        except (ValueError, KeyError, TypeError):
            raise SandboxError(
                f"The Convex backend does not answer {name} (HTTP {said['status']})."
            ) from None

    async def _push(self, folder: Path, tools: Path) -> tuple[bool, str]:
        """With Convex's own tool, which bundles a project's code and runs none of it."""
        secret = self.admin_key.get_secret_value()
        # With CI it reports nothing about itself to anybody.
        ours = {"HOME": str(folder), "CI": "1", URL: self.url, ADMIN_KEY: secret}
        process = await asyncio.create_subprocess_exec(
            layout.node(str(tools)),
            str(tools / "node_modules/convex/bin/main.js"),
            *("deploy", "--yes", "--typecheck", "disable", "--codegen", "disable"),
            cwd=folder,
            env={**without_keys(), **ours},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            said, _ = await asyncio.wait_for(process.communicate(), LONGEST_DEPLOY_S)
        except TimeoutError:
            return False, f"timed out after {LONGEST_DEPLOY_S:.0f} s"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        output = clean(said, LONGEST_OUTPUT).replace(secret, "…")
        return process.returncode == 0, output
