"""What the web takes: pages over many results, and a hundred readers while a run writes.

`python -m bench.viewing serve` serves the results of the current folder as they are;
`python -m bench.viewing read ADDRESS READERS` reads pages until its standard input ends.
"""

import asyncio
import gzip
import itertools
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import urljoin

import aiohttp
import httpx

from bench.fabricate import fill_warehouse
from bench.load import MODEL
from bench.measuring import BenchError, Taken, measured
from bench.options import Options
from bench.project import PREDICTIONS, environment, run, write_settings
from bench.server import model_names
from bench.serving import load_server
from bench.tables import Cell, Table
from eval_pipeline.results import build as building
from eval_pipeline.results.build import DERIVED, derive
from eval_pipeline.settings.settings import Settings
from eval_pipeline.web.serve import listen, serve

MODELS, ITEMS, RUNS = 60, 2_500, 3
READERS, READING_S = 100, 1.0
OTHERS, ASKED, AT_ONCE, LATENCY_S = 4, 5_000, 100, 0.2
NICE = 19
CRAWLED, LINKS_FOLLOWED, READ_PAGES = 40, 12, 200
PAGE_COLUMNS = ("", "ms", "best ms", "kB", "packed kB")
LOAD_COLUMNS = ("", "run s", "best s", "times alone", "best times", "pages/s", "p50 ms", "p95 ms")
LINK = re.compile(r'href="([^"#?:]*/)"')


def section(options: Options) -> Iterator[Table]:
    """The pages, then the readers."""
    yield _pages(options)
    yield _load(options)


def _pages(options: Options) -> Table:
    """Each page as its first reader gets it."""
    models, items = options.scaled(MODELS), options.scaled(ITEMS)
    folder = options.folder / "viewed"
    options.say(f"fabricating {models * items * RUNS:,} results")
    fabricate_project(folder, models, items)
    found: dict[str, list[tuple[float, bytes]]] = {}
    with served(folder) as address, httpx.Client(base_url=address) as client:
        paths = _paths(client)
        for repetition in range(options.repetitions * 5):
            for name, path in paths.items():
                began = time.perf_counter()
                # What was asked before would be answered from memory.
                content = client.get(f"{path}?{repetition}").raise_for_status().content
                found.setdefault(name, []).append((time.perf_counter() - began, content))
    title = f"Pages over {models} models x {items:,} items x {RUNS} runs"
    return Table(title, PAGE_COLUMNS, tuple(_page_row(name, one) for name, one in found.items()))


def _page_row(name: str, found: Sequence[tuple[float, bytes]]) -> tuple[Cell, ...]:
    times = [1000 * seconds for seconds, _ in found]
    content = found[0][1]
    return name, median(times), min(times), len(content) / 1000, len(gzip.compress(content)) / 1000


def _paths(client: httpx.Client) -> dict[str, str]:
    """A page of each sort, found by its link."""
    board = _links(client, "/")
    run_page = next(link for link in board if re.fullmatch(r"/runs/[^/]+/[^/]+/", link))
    return {
        "leaderboard": "/",
        "leaderboard of a category": next(link for link in board if link.count("/") > 3),  # noqa: PLR2004
        "models": "/models/",
        "model": next(link for link in board if link.startswith("/models/") and link != "/models/"),
        "runs": "/runs/",
        "run": run_page,
        "items of a run": f"{run_page}items/failed/1/",
    }


def _links(client: httpx.Client, path: str) -> list[str]:
    found = LINK.findall(client.get(path).raise_for_status().text)
    return list(dict.fromkeys(urljoin(path, link) for link in found))


def fabricate_project(folder: Path, models: int, items: int) -> None:
    """A project with results to look at, derived tables included."""
    folder.mkdir()
    write_settings(folder, base_url="http://127.0.0.1:9/v1", at_once=1)
    database = folder / "data" / "evals.duckdb"
    database.parent.mkdir()
    fill_warehouse(database, models=models, items=items, samples=1, runs=RUNS)
    with building._new_file(database, {}) as connection:
        for name in DERIVED:
            derive(connection, name)
        connection.execute("checkpoint")


@dataclass(frozen=True)
class _Read:
    """What readers got while a run was at work."""

    pages: int
    errors: int
    seconds: float
    p50_ms: float
    p95_ms: float


def _load(options: Options) -> Table:
    """The same run alone and with readers, in turns."""
    alone: list[Taken] = []
    read: list[tuple[Taken, _Read]] = []
    for repetition in range(options.repetitions):
        options.say(f"Readers, {repetition + 1} of {options.repetitions}")
        alone.append(_evaluated(options, readers=0)[0])
        taken, seen = _evaluated(options, readers=options.scaled(READERS))
        if seen is None or seen.errors or not seen.pages:
            raise BenchError(f"the readers got {seen}")
        read.append((taken, seen))
    base = [taken.wall_s for taken in alone]
    asked, workers = options.scaled(ASKED), AT_ONCE
    title = f"Asking {asked:,} questions, {workers} at a time, while results are read"
    rows = (
        ("alone", median(base), min(base), 1.0, 1.0, None, None, None),
        _load_row(f"{options.scaled(READERS)} readers", read, base),
    )
    return Table(title, LOAD_COLUMNS, rows, "No reader met an error.")


def _load_row(
    name: str, found: Sequence[tuple[Taken, _Read]], alone: Sequence[float]
) -> tuple[Cell, ...]:
    walls = [taken.wall_s for taken, _ in found]
    pages = median(read.pages / read.seconds for _, read in found)
    p50, p95 = median(read.p50_ms for _, read in found), max(read.p95_ms for _, read in found)
    ratios = median(walls) / median(alone), min(walls) / min(alone)
    return name, median(walls), min(walls), *ratios, pages, p50, p95


def _evaluated(options: Options, *, readers: int) -> tuple[Taken, _Read | None]:
    """A run of one model beside the results of others, from process start to exit."""
    with (
        options.project_copy(options.scaled(ASKED), 1 + OTHERS) as project,
        load_server(latency_s=LATENCY_S, models=1 + OTHERS) as server,
    ):
        write_settings(project, base_url=server.base_url, at_once=AT_ONCE)
        others = model_names(1 + OTHERS)[1:]
        run(project, sys.executable, "-m", "bench.fabricate", "judged", *others)
        run(project, "evals", "rebuild")
        command = [*PREDICTIONS, MODEL]
        with served(project) as address, _reading(address, readers) as readings:
            taken = measured(command, project, environment())
    return taken, readings[0] if readings else None


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The web over a project, as it is now."""
    with _child("serve", folder=folder) as process:
        yield _line(process)


@contextmanager
def _reading(address: str, readers: int) -> Iterator[list[_Read]]:
    """Readers at work; what they got is there when the block has ended."""
    got: list[_Read] = []
    if not readers:
        yield got
        return
    with _child("read", address, str(readers)) as process:
        _line(process)
        yield got
        if process.stdin is not None:
            process.stdin.close()
        got.append(_Read(**json.loads(_line(process))))


@contextmanager
def _child(*words: str, folder: Path | None = None) -> "Iterator[subprocess.Popen[str]]":
    """This module in a process of its own, which ends when its standard input does."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.viewing", *words],
        cwd=folder,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield process
        process.terminate()


def _line(process: "subprocess.Popen[str]") -> str:
    if process.stdout is None or not (said := process.stdout.readline().strip()):
        raise BenchError("The web could not be measured; why stands above.")
    return said


def _serve() -> None:
    listener = listen("127.0.0.1", 0)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    serve(Settings.from_env(), listener, lambda: print(address, flush=True))


def _stand_back() -> None:
    """Readers have computers of their own: theirs is to take as little of this one as it can."""
    os.nice(NICE)
    with suppress(OSError):  # of sessions, where a system shares among these first
        os.setsid()
        Path("/proc/self/autogroup").write_text(str(NICE))


async def _read(address: str, readers: int) -> _Read:
    """Each reader looks at one page after the other, at each for a while."""
    _stand_back()
    paths = _some_pages(address)
    print("ready", flush=True)
    times: list[float] = []
    errors: list[str] = []
    began, ended = time.perf_counter(), asyncio.Event()
    connector = aiohttp.TCPConnector(limit=readers)
    # Browsers unpack on their own machines.
    async with aiohttp.ClientSession(address, connector=connector, auto_decompress=False) as client:

        async def read(seed: int) -> None:
            chance = random.Random(seed)
            while not ended.is_set():
                await asyncio.sleep(READING_S * chance.uniform(0.5, 1.5))
                path, asked = chance.choice(paths), time.perf_counter()
                try:
                    async with client.get(path, raise_for_status=True) as reply:
                        await reply.read()
                    times.append(1000 * (time.perf_counter() - asked))
                except aiohttp.ClientError as error:
                    errors.append(f"{path}: {error}")

        at_work = [asyncio.create_task(read(number)) for number in range(readers)]
        await asyncio.to_thread(sys.stdin.read)
        ended.set()
        await asyncio.gather(*at_work)
    for error in errors[:10]:
        print(error, file=sys.stderr)
    # The nineteenth of twenty.
    p95 = quantiles(times, n=20)[-1]
    seconds = time.perf_counter() - began
    return _Read(len(times), len(errors), seconds, median(times), p95)


def _some_pages(address: str) -> list[str]:
    """Pages of every sort, as links lead to them: what people look at at a time."""
    found: dict[str, None] = {"/": None}
    with httpx.Client(base_url=address, timeout=60) as client:
        for path in itertools.islice(_growing(found), CRAWLED):
            links = _links(client, path)
            chosen = random.Random(path).sample(links, min(len(links), LINKS_FOLLOWED))
            found.update(dict.fromkeys(chosen))
    return list(found)[:READ_PAGES]


def _growing(found: dict[str, None]) -> Iterator[str]:
    """All of them, those too that are found meanwhile."""
    place = 0
    while place < len(found):
        yield list(found)[place]
        place += 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve"]:
            _serve()
        case ["read", given_address, count]:
            print(json.dumps(asdict(asyncio.run(_read(given_address, int(count))))))
