"""How long the DuckDB file takes to be built anew from a large journal, and how much memory."""

import sys
from pathlib import Path
from statistics import median

from bench.measuring import measured
from bench.options import Options
from bench.project import environment, run
from bench.server import model_names
from bench.tables import Table

MODELS = 10
COLUMNS = ("", "seconds", "best s", "peak MB", "journal MB", "DuckDB file MB")
_MB = 1024 * 1024


def section(options: Options) -> list[Table]:
    """`evals rebuild` over a fabricated journal."""
    per_model = max(1, options.scaled(options.rebuild_rows) // MODELS)
    with options.project_copy(per_model, MODELS) as project:
        options.say(f"fabricating {per_model * MODELS:,} predictions and as many judgements")
        run(project, sys.executable, "-m", "bench.fabricate", "judged", *model_names(MODELS))
        found = []
        for repetition in range(options.repetitions):
            options.say(f"Rebuild, {repetition + 1} of {options.repetitions}")
            found.append(measured(["evals", "rebuild"], project, environment()))
        data = project / "data"
        sizes = size_of(data / "journal") / _MB, (data / "evals.duckdb").stat().st_size / _MB
    walls = [taken.wall_s for taken in found]
    name = f"{per_model * MODELS:,} predictions and as many judgements"
    row = (name, median(walls), min(walls), max(taken.peak_mb for taken in found), *sizes)
    return [Table("evals rebuild, from process start to exit", COLUMNS, (row,))]


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(one.stat().st_size for one in files if one.is_file())
