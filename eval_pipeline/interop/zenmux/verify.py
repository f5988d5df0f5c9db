"""Whether the numbers here are those that a results folder states itself."""

from collections.abc import Iterator
from typing import NamedTuple

import duckdb

from eval_pipeline.interop.zenmux.convert import JUDGE_VERSION
from eval_pipeline.interop.zenmux.files import number_in
from eval_pipeline.interop.zenmux.read import ResultsFolder
from eval_pipeline.results.queries import query
from eval_pipeline.results.stats.calibration import Published, as_published


class Compared(NamedTuple):
    """A model's numbers there and here."""

    model: str
    there: Published
    here: Published

    @property
    def same(self) -> bool:
        """To the second decimal, which is all that is stated."""
        return self.there == self.here


def compared(db: duckdb.DuckDBPyConnection, folder: ResultsFolder) -> Iterator[Compared]:
    """Every model that the folder's summary has numbers of."""
    given = {"run_id": folder.run_id, "judge_version": JUDGE_VERSION}
    found = query(db, "summaries/zenmux_published", given).fetchall()
    here = {model: as_published(*numbers) for model, *numbers in found}
    # A repair there names models after their files, and so some of them wrongly.
    by_file = {folder.answers_of(model): model for model in here}
    for named, result in folder.results.items():
        model = by_file.get(result.answers, named)
        stated = [number_in(result.metrics, name, 1e6) for name in Published._fields]
        accuracy, interval, calibration = stated
        ours = here.get(model)
        if ours and accuracy is not None and interval is not None and calibration is not None:
            yield Compared(model, Published(accuracy, interval, calibration), ours)
