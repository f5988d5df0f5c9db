"""Compacts one folder of a journal, as a process: for whoever waits for answers meanwhile."""

import os
import sys
from pathlib import Path

from eval_pipeline.journal import STREAMS, GoneError, JournalError
from eval_pipeline.journal.compaction import compact
from eval_pipeline.processes import EXPLAINED, GONE


def _main(folder: str, name: str, stream: str) -> int:
    parent = os.getppid()
    (record,) = (one.record for one in STREAMS if one.name == stream)
    try:
        # Whoever started it has claimed the folder; without them, somebody else may be at work.
        compact(Path(folder), name, record, still_wanted=lambda: os.getppid() == parent)
    except GoneError:
        return GONE
    except JournalError as error:
        sys.stderr.write(str(error))
        return EXPLAINED
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
