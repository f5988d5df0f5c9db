"""Raw clients: ask, read the whole reply, do nothing else. What any engine is measured against."""

import argparse
import asyncio
import importlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict

import aiohttp

from bench.measuring import Stopwatch, Taken
from bench.project import question_text

Ask = Callable[[dict[str, object]], Awaitable[None]]
CLIENTS = {"aiohttp": "aiohttp", "aiohttp-uvloop": "uvloop", "pyreqwest": "pyreqwest"}
"""Each raw client, and the package it needs."""
_SYSTEM = "Think first. Then give your answer, and how sure you are of it in per cent."


def body(number: int) -> dict[str, object]:
    """The request for the n-th question."""
    messages = [
        {"role": "system", "content": _SYSTEM},
        {"role": "user", "content": question_text(number)},
    ]
    return {
        "model": "bench/m01",
        "messages": messages,
        "temperature": 0.0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def _ask_all(ask: Ask, questions: int, at_once: int) -> Taken:
    numbers = iter(range(questions))

    async def worker() -> None:
        for number in numbers:
            await ask(body(number))

    watch = Stopwatch()
    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(worker())
    return watch.taken()


async def with_aiohttp(base_url: str, questions: int, at_once: int) -> Taken:
    """aiohttp with a connection for every worker."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def ask(request: dict[str, object]) -> None:
            async with session.post(f"{base_url}/chat/completions", json=request) as response:
                _check(response.status, await response.read())

        return await _ask_all(ask, questions, at_once)


async def with_pyreqwest(base_url: str, questions: int, at_once: int) -> Taken:
    """pyreqwest, whose connections are made and read in Rust."""
    module = importlib.import_module("pyreqwest.client")
    async with module.ClientBuilder().build() as client:

        async def ask(request: dict[str, object]) -> None:
            built = client.post(f"{base_url}/chat/completions").body_json(request).build()
            response = await built.send()
            _check(response.status, bytes(await response.bytes()))

        return await _ask_all(ask, questions, at_once)


def _check(status: int, reply: bytes) -> None:
    if status != 200 or b"[DONE]" not in reply:  # noqa: PLR2004
        raise RuntimeError(f"The load server answered {status}: {reply[:200]!r}")


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.clients", description=__doc__)
    parser.add_argument("client", choices=list(CLIENTS))
    parser.add_argument("base_url")
    parser.add_argument("questions", type=int)
    parser.add_argument("at_once", type=int)
    given = parser.parse_args()
    if given.client == "pyreqwest":
        work = with_pyreqwest(given.base_url, given.questions, given.at_once)
    else:
        work = with_aiohttp(given.base_url, given.questions, given.at_once)
    if given.client == "aiohttp-uvloop":
        import uvloop  # noqa: PLC0415

        taken = uvloop.run(work)
    else:
        taken = asyncio.run(work)
    print(json.dumps(asdict(taken)))


if __name__ == "__main__":
    _main()
