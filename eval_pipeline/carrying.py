"""Answers of an older benchmark version that need not be asked again, taken over into a new run."""

import logging
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from eval_pipeline.benchmark import past_items
from eval_pipeline.history import PAST_RUNS, PREDICTION_BRIEFS, LastWords
from eval_pipeline.journal import JUDGED, PREDICTIONS, VERSIONS, Journal
from eval_pipeline.records import Item, ItemKey, Judgement, Prediction, Run, fingerprint

log = logging.getLogger(__name__)


def carry_over(
    journal: Journal, run: Run, request_hashes: Mapping[ItemKey, str]
) -> frozenset[ItemKey]:
    """Takes over what was asked in exactly the same way before; says for which items."""
    if run.carry_from is None or not journal.exists(PAST_RUNS, run.model, run.carry_from):
        return frozenset()
    earlier = next(journal.read_file(PAST_RUNS, run.model, run.carry_from))
    carrying = _Carrying.of(journal, run, earlier, request_hashes)
    if carrying.keys:
        carrying.write()
        log.info(
            "%s: %d answers are those of run %s",
            run.model,
            len(carrying.keys),
            earlier.run_id[:8],
        )
    return carrying.keys


@dataclass(frozen=True)
class _Carrying:
    """What is taken over from one run into another, read once more for each file it goes to."""

    journal: Journal
    run: Run
    earlier: Run
    words: LastWords
    keys: frozenset[ItemKey]
    prediction_ids: Set[str]

    @classmethod
    def of(
        cls, journal: Journal, run: Run, earlier: Run, request_hashes: Mapping[ItemKey, str]
    ) -> "_Carrying":
        # Only ids are gathered: the answers of a large run would not fit into memory.
        where = (PREDICTION_BRIEFS, earlier.model, earlier.run_id)
        keys = list(request_hashes)
        words = LastWords(keys, journal.read(*where))
        same: dict[ItemKey, str] = {}
        for number, one in enumerate(journal.read(*where)):
            if not words.is_last(number, one.key) or not one.outcome.is_result:
                continue
            if request_hashes[one.key] == one.request_hash:
                same[one.key] = one.prediction_id
        kept = frozenset(key for key in keys if key in same)
        return cls(journal, run, earlier, words, kept, frozenset(same.values()))

    def write(self) -> None:
        """The verdicts first, so that no answer is there without those it already has."""
        # The same names and ids each time, so that doing it again after a crash changes nothing.
        which = fingerprint(*sorted(self.prediction_ids))
        name = f"carried-from-{self.earlier.run_id}-{which}"
        where = (self.run.model, self.run.run_id, name)
        self.journal.write_whole(JUDGED, *where, records=self._judgements())
        self.journal.write_whole(PREDICTIONS, *where, records=self._predictions())

    def _predictions(self) -> Iterator[Prediction]:
        everything = self.journal.read(PREDICTIONS, self.earlier.model, self.earlier.run_id)
        for number, one in enumerate(everything):
            if one.key in self.keys and self.words.is_last(number, one.key):
                yield one.model_copy(
                    update={
                        "run_id": self.run.run_id,
                        "prediction_id": self._new_id(one.prediction_id),
                        "carried_from": one.carried_from or self.earlier.run_id,
                    }
                )

    def _judgements(self) -> Iterator[Judgement]:
        unchanged = self._unchanged()
        for verdict in self.journal.read(JUDGED, self.earlier.model, self.earlier.run_id):
            if (
                verdict.score is not None
                and verdict.prediction_id in self.prediction_ids
                and ItemKey(verdict.suite, verdict.item_id) in unchanged
            ):
                new_id = self._new_id(verdict.prediction_id)
                yield verdict.model_copy(
                    update={
                        "run_id": self.run.run_id,
                        "prediction_id": new_id,
                        "carried_from": verdict.carried_from or self.earlier.run_id,
                    }
                )

    def _unchanged(self) -> Set[ItemKey]:
        """Items to be judged in the same way: same judge prompt, question and reference."""
        versions = self.journal.read(VERSIONS)
        prompts = {one.benchmark_version: one.judge_prompt_hash for one in versions}
        before, after = self.earlier.benchmark_version, self.run.benchmark_version
        if prompts[after] != prompts[before]:
            return frozenset()
        old, new = past_items(self.journal, before), past_items(self.journal, after)
        return {key for key in self.keys if key in old and _asks_the_same(old[key], new[key])}

    def _new_id(self, prediction_id: str) -> str:
        return fingerprint(prediction_id, self.run.run_id)


def _asks_the_same(one: Item, other: Item) -> bool:
    return (one.question, one.answer) == (other.question, other.answer)
