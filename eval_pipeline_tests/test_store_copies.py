"""Working copies of a store, whatever is done to them: in the end every line is there once."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from eval_pipeline.journal import PREDICTIONS, Journal, compaction
from eval_pipeline.store.place import Place
from eval_pipeline_tests.builders import a_prediction

WHERE = (PREDICTIONS, "demo/strong", "run-1")


@dataclass
class Machine:
    """A working copy, and the files that its own processes wrote."""

    journal: Journal
    chance: random.Random
    own: set[Path] = field(default_factory=set)
    landed: list[str] = field(default_factory=list)

    def items(self) -> list[str]:
        """New ones, of which it is known that they have landed."""
        count = self.chance.randint(1, 3)
        new = [f"{self.journal.root.name}-{len(self.landed) + number}" for number in range(count)]
        self.landed += new
        return new

    async def _append(self) -> None:
        async with self.journal.writer(*WHERE) as writer:
            for item in self.items():
                await writer.append(a_prediction(item))
        self.own.add(writer.path)

    def is_killed_before_it_sends(self) -> None:
        asyncio.run(self._append())

    def asks(self) -> None:
        asyncio.run(self._ask(compacting=False))

    def asks_and_compacts(self) -> None:
        asyncio.run(self._ask(compacting=True))

    async def _ask(self, *, compacting: bool) -> None:
        async with self.journal.claim(*WHERE[:2]):
            await self._append()
            if compacting:
                self.journal.compact(*WHERE)

    def has_written_more_than_it_sent(self) -> None:
        for path in self._written():
            lines = b"".join(
                a_prediction(item).model_dump_json().encode() + b"\n" for item in self.items()
            )
            path.write_bytes(path.read_bytes().removesuffix(HALF) + lines)

    def was_killed_within_a_line(self) -> None:
        for path in self._written():
            path.write_bytes(path.read_bytes().removesuffix(HALF) + HALF)

    def _written(self) -> list[Path]:
        """One of its own files that still counts, if there is any."""
        left = sorted(self.own & {*self.journal.files(*WHERE)})
        return self.chance.sample(left, k=min(1, len(left)))

    def removes_what_was_compacted_long_ago(self) -> None:
        for folder in {path.parent for path in self.journal.files(*WHERE)}:
            compaction.remove_superseded(folder)

    def looks(self) -> None:
        self.journal.sync()

    def does_something(self) -> None:
        does: list[Callable[[], None]] = [
            self.asks,
            self.asks_and_compacts,
            self.is_killed_before_it_sends,
            self.has_written_more_than_it_sent,
            self.was_killed_within_a_line,
            self.removes_what_was_compacted_long_ago,
            self.looks,
        ]
        self.chance.choice(does)()


HALF = b'{"prediction_id": "ha'


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 300))]
)
def test_every_line_is_in_every_copy_once(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "GRACE_S", -1)
    place, chance = Place(f"file://{tmp_path}/store"), random.Random(seed)
    machines = [
        Machine(Journal(tmp_path / name, store=place), chance) for name in ("one", "two", "three")
    ]

    for _ in range(chance.randint(5, 20)):
        chance.choice(machines).does_something()
    for machine in machines * 2:
        machine.looks()

    landed = sorted(item for machine in machines for item in machine.landed)
    late = Machine(Journal(tmp_path / "late", store=place), chance)
    late.looks()
    for machine in (*machines, late):
        found = sorted(one.item_id for one in machine.journal.read(*WHERE))
        assert found == landed, machine.journal.root.name
