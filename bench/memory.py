"""How much memory asking takes, and how it grows with the number of questions."""

from bench.contestants import COMMAND, ENGINE, ask_alone, whole_command
from bench.load import Load
from bench.options import Options
from bench.serving import load_server
from bench.tables import Cell, Table

FEW, MANY, AT_ONCE = 5_000, 50_000, 100


def section(options: Options) -> list[Table]:
    """Peak memory for few and for many questions, and the difference."""
    sizes = (options.scaled(FEW), options.scaled(MANY))
    rows: list[tuple[Cell, ...]] = []
    for name, measure in ((ENGINE, ask_alone), (COMMAND, whole_command)):
        peaks = []
        for questions in sizes:
            options.say(f"Memory: {name}, {questions:,} questions")
            with load_server() as server:
                load = Load(questions, 0.0, AT_ONCE)
                peaks.append(measure(load, server, options).peak_mb)
        rows.append((name, *peaks, peaks[1] - peaks[0]))
    few, many = (f"MB for {questions:,}" for questions in sizes)
    return [Table("Peak memory, latency 0", ("", few, many, "growth MB"), tuple(rows))]
