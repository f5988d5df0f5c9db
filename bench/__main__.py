"""`python -m bench`: measures what the engine promises and prints it in tables."""

import argparse
import json
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from bench import (
    asking,
    coding,
    commands,
    crash,
    fairness,
    growth,
    importing,
    memory,
    rebuild,
    sandbox,
    startup,
    statistics,
    viewing,
)
from bench.measuring import BenchError
from bench.options import Options, working_folder
from bench.tables import Table, as_json, print_table

WIDTH = 200
SECTIONS: Mapping[str, Callable[[Options], Iterable[Table]]] = {
    "asking": asking.section,
    "startup": startup.section,
    "memory": memory.section,
    "fairness": fairness.section,
    "crash": crash.section,
    "rebuild": rebuild.section,
    "importing": importing.section,
    "statistics": statistics.section,
    "sandbox": sandbox.section,
    "coding": coding.section,
    "commands": commands.section,
    "viewing": viewing.section,
    "growth": growth.section,
}


def main(words: Sequence[str] | None = None) -> None:
    """Runs the chosen sections one after the other and prints each as soon as it is there."""
    given = _arguments(words)
    with working_folder(given.folder) as folder:
        tables = [
            table
            for name in given.sections or SECTIONS
            for table in _measured(name, _options(given, folder))
        ]
    if given.json:
        given.json.write_text(json.dumps(as_json(tables), indent=1) + "\n", "utf-8")
    if any(table.failed for table in tables):
        sys.exit("Not everything could be measured; the reasons stand below the tables.")


def _measured(name: str, options: Options) -> Iterator[Table]:
    """A section's tables, printed; one that breaks down must not cost the others."""
    console = Console(width=WIDTH)
    try:
        for table in SECTIONS[name](options):
            print_table(table, console)
            yield table
    except BenchError as error:
        broken = Table(name, ("failed",), (), str(error), failed=True)
        print_table(broken, console)
        yield broken


def _options(given: argparse.Namespace, folder: Path) -> Options:
    return Options(
        folder=folder,
        repetitions=given.repetitions or (1 if given.quick else 3),
        scale=0.1 if given.quick else 1.0,
        kill_points=given.kill_points or (1 if given.quick else 5),
        rebuild_rows=given.rebuild_rows,
        peers=given.peers,
    )


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    add = parser.add_argument
    add("sections", nargs="*", metavar="section", help=f"of {', '.join(SECTIONS)}; default: all")
    add("--quick", action="store_true", help="everything once, at a tenth of the size")
    add("--repetitions", type=int, help="how often each row of the asking tables is measured")
    add("--kill-points", type=int, help="how many runs are killed in the crash table")
    add("--rebuild-rows", type=int, default=150_000, help="predictions, and as many judgements")
    add("--peers", metavar="PYTHON", help="the Python of a venv with inspect_ai and lm-eval")
    add("--folder", type=Path, help="where temporary projects are made; default: data/")
    add("--json", type=Path, metavar="FILE", help="also write the unrounded values there")
    given = parser.parse_args(words)
    if unknown := set(given.sections) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    return given


if __name__ == "__main__":
    # Ended like this it still ends what it started and removes what it made.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
