"""One who lands results in DuckLake with a PostgreSQL catalog; needs the extensions from PyPI.

It runs in an environment of its own, with nothing but duckdb and the two extensions.
"""

import json
import sys
import time
from pathlib import Path

import duckdb

COLUMNS = "prediction_id varchar, run_id varchar, model varchar, item_id varchar, answer varchar"
MOST_TRIES = 100


def opened(folder: str) -> duckdb.DuckDBPyConnection:
    """A connection to the lake; where PostgreSQL is, its variables say."""
    db = duckdb.connect(config={"threads": "1"})
    places = [Path(place) for place in sys.path if place.endswith("site-packages")]
    for name in ("postgres_scanner", "ducklake"):
        pattern = f"duckdb_extension_*/**/{name}.duckdb_extension"
        (found,) = (one for place in places for one in place.glob(pattern))
        db.execute(f"load '{found}'")
    db.execute(f"attach 'ducklake:postgres:' as lake (data_path '{folder}')")
    db.execute("use lake")
    db.execute(f"set ducklake_max_retry_count = {MOST_TRIES}")
    return db


def land(db: duckdb.DuckDBPyConnection, model: str, first: int, rows: int) -> None:
    """One transaction."""
    answer = "array_to_string([md5(n || '-' || part) for part in range(18)], '')"
    db.execute(
        f"insert into predictions select '{model}-' || n, 'run', '{model}', 'q' || n, {answer} "
        f"from range({first}, {first + rows}) t(n)"
    )


def main(folder: str, model: str, batches: str, rows: str, start: str) -> None:
    """The same as in `landing.py`; with no batches, makes the table and its history."""
    db = opened(folder)
    if batches == "0":
        db.execute(f"create table predictions ({COLUMNS})")
        land(db, model, 0, int(rows))
        print("[]")
        return
    waits = []
    time.sleep(max(0.0, float(start) - time.time()))
    for batch in range(int(batches)):
        began = time.time()
        land(db, model, batch * int(rows), int(rows))
        waits.append([time.time() - began, time.time() - began, time.time()])
    (found,) = db.execute(f"select count(*) from predictions where model = '{model}'").fetchall()
    if found != (int(batches) * int(rows),):
        sys.exit(f"{found[0]} rows of {model} are there")
    print(json.dumps(waits))


if __name__ == "__main__":
    main(*sys.argv[1:])
