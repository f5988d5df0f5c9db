"""What came of a stage, in the log: a sentence, and the same as numbers."""

import logging

from eval_pipeline.logs import FACTS, about
from eval_pipeline.stages.workers import Tally

log = logging.getLogger(__name__)


def tell(tally: Tally, level: int = logging.INFO) -> None:
    """Tells it, and of which run if there was only one."""
    runs = {one.run_id for one in tally.runs}
    known = {"run_id": runs.pop()} if len(runs) == 1 else {}
    with about(**known):
        log.log(level, tally.line(), extra={FACTS: tally.progress()})
