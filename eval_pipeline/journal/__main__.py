"""Compact one folder of a journal in a process of its own: see `compact_in_subprocess`."""

import os
import sys
from pathlib import Path

from eval_pipeline.journal import STREAMS, FileCompactedError, JournalError
from eval_pipeline.journal.compaction import compact
from eval_pipeline.processes import EXPLAINED, GONE


def _main(folder: str, name: str, stream: str) -> int:
    parent = os.getppid()
    (record,) = (one.record for one in STREAMS if one.name == stream)
    try:
        # The parent holds the lock; once it is gone, another process may be at work.
        compact(Path(folder), name, record, still_wanted=lambda: os.getppid() == parent)
    except FileCompactedError:
        return GONE
    except JournalError as error:
        sys.stderr.write(str(error))
        return EXPLAINED
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
