"""One who lands results in batches, beside others who do: `python -m bench.landing …`.

Prints for each batch how long it waited until it could go on, and until readers saw it, and when it
was done. `lake_landing.py` is the same for DuckLake.
"""

import asyncio
import json
import sys
import time
from hashlib import md5
from pathlib import Path

from eval_pipeline.journal import PREDICTIONS, Journal
from eval_pipeline.outcomes import Outcome
from eval_pipeline.records import Prediction, Usage, now
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.store.place import Place

USAGE = Usage(input_tokens=120, output_tokens=60, cost_usd=3.6e-5)


def a_reply(model: str, number: int) -> Prediction:
    """An answer that nobody gave."""
    return Prediction(
        prediction_id=f"{model}-{number}",
        run_id="run",
        model=model,
        suite="bench",
        item_id=f"q{number}",
        outcome=Outcome.OK,
        answer="".join(md5(f"{number}-{part}".encode()).hexdigest() for part in range(18)),
        usage=USAGE,
        attempts=1,
        request_hash=f"{number:032}",
        finished_at=now(),
    )


async def land(warehouse: Warehouse, model: str, batches: int, rows: int) -> list[list[float]]:
    """Journals each batch and publishes it."""
    journal, waits = warehouse.journal, []
    async with journal.claim(PREDICTIONS, model), journal.writer(PREDICTIONS, model, "run") as out:
        for batch in range(batches):
            began = time.time()
            replies = (a_reply(model, batch * rows + number) for number in range(rows))
            await asyncio.gather(*map(out.append, replies))
            kept = time.time()
            await asyncio.to_thread(warehouse.publish)
            waits.append([kept - began, time.time() - began, time.time()])
    return waits


def main(folder: str, model: str, batches: str, rows: str, *more: str) -> None:
    """Begins at a time, like all others, and may have a store."""
    start, *store = more
    place = Place(f"file://{store[0]}") if store else None
    journal = Journal(Path(folder, "journal"), store=place)
    warehouse = Warehouse(Path(folder, "evals.duckdb"), journal)
    time.sleep(max(0.0, float(start) - time.time()))
    print(json.dumps(asyncio.run(land(warehouse, model, int(batches), int(rows)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
