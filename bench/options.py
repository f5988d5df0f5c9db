"""What a run of the benchmarks is told: how large, how often, where, with whom."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bench.project import ROOT, a_copy, a_project
from bench.serving import load_server


@dataclass(frozen=True)
class Options:
    """The same for every section; `folder` is where projects are made and removed again."""

    folder: Path
    repetitions: int = 3
    scale: float = 1.0
    kill_points: int = 5
    rebuild_rows: int = 150_000
    peers: str | None = None
    console: Console = Console(stderr=True)  # noqa: RUF009  (it has no state of ours)

    def scaled(self, count: int) -> int:
        """The count at the chosen size."""
        return max(1, round(count * self.scale))

    def say(self, what: str) -> None:
        """What is going on, for those who wait."""
        self.console.print(what, style="dim", markup=False, highlight=False)

    def project(self, questions: int, models: int = 1) -> Path:
        """A project with a catalog and so many questions, made when first needed."""
        folder = self.folder / f"project-{questions}-{models}"
        if not folder.exists():
            self.say(f"preparing a project with {questions:,} questions and {models} model(s)")
            with load_server(models=models) as server:
                a_project(folder, questions=questions, base_url=server.base_url)
        return folder

    @contextmanager
    def project_copy(self, questions: int, models: int = 1) -> Iterator[Path]:
        """A copy of that project for one measurement; it goes with the block."""
        project = self.project(questions, models)
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            yield a_copy(project, Path(folder) / "project")


@contextmanager
def working_folder(given: Path | None) -> Iterator[Path]:
    """A temporary folder on the disk that journals are on, where a sync costs what it costs."""
    parent = given or ROOT / "data"
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=".bench-") as folder:
        yield Path(folder)
