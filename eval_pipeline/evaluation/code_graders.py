"""Where code is graded: opened when the first of it is to be, as wide as the machine can bear."""

import asyncio
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from pydantic import SecretStr

from eval_pipeline.evaluation.workers import unless_stopped
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import Item
from eval_pipeline.runtime import in_a_thread
from eval_pipeline.settings.sections import Coding
from eval_pipeline.settings.settings import CONVEX_KEY, Settings
from eval_pipeline.suites.coding.judge import CodeJudge
from eval_pipeline.suites.coding.sandbox.opening import open_sandbox
from eval_pipeline.suites.coding.toolchains.base import Toolchain, ToolchainError
from eval_pipeline.suites.coding.toolchains.convex.backend import Backend
from eval_pipeline.suites.coding.toolchains.convex.toolchain import Convex
from eval_pipeline.suites.coding.toolchains.registry import TOOLCHAINS, home_of, toolchain

MEMORY_EACH_MB = 1024
"""About what one grading uses; its limits allow it more than that."""
SHARE_OF_MEMORY = 0.7


@dataclass
class CodeGraderFactory:
    """Opens the sandbox once, and only if there is code to grade."""

    settings: Settings
    fresh: bool = False
    _judge: CodeJudge | None = None
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def open(self, items: Iterable[Item]) -> CodeJudge:
        """Return the judge of code; raise if a sandbox or a toolchain is missing."""
        coding, data = self.settings.coding, self.settings.data
        async with unless_stopped(), self._opening:
            needed = {item.toolchain for item in items if isinstance(item, CodingTask)}
            for tools in map(toolchain, sorted(needed)):
                if not tools.is_prepared(home_of(tools, data)):
                    raise ToolchainError(
                        f"The toolchain {tools.name} is not prepared, so nothing was graded: "
                        f"evals toolchain prepare {tools.name}"
                    )
            if self._judge is None:
                # Whoever has set it to "none" has said so in this launch.
                unsafe = coding.isolation == "none"
                sandbox = await in_a_thread(partial(open_sandbox, coding.isolation, unsafe=unsafe))
                known = with_backend(coding, self.settings.keys.get(CONVEX_KEY))
                self._judge = CodeJudge(
                    sandbox, data, Slots(num_workers(coding)), self.fresh, known
                )
            return self._judge


def with_backend(settings: Coding, key: SecretStr | None) -> Mapping[str, Toolchain]:
    """Return every toolchain; whole Convex projects go to a backend, if one is named."""
    if settings.convex_url is None:
        return TOOLCHAINS
    if key is None:
        raise ToolchainError(
            f"coding.convex_url names a Convex backend: its key belongs into .env, as {CONVEX_KEY}."
        )
    backend = Backend.at(settings.convex_url, settings.convex_site_url, key)
    return {**TOOLCHAINS, "convex": Convex(server=backend)}


class Slots(asyncio.Semaphore):
    """Slots that are not given any more once the work is to stop."""

    async def acquire(self) -> Literal[True]:
        async with unless_stopped():
            return await super().acquire()


def num_workers(settings: Coding) -> int:
    """Return the setting, else as many as there are cores, if there is memory for them."""
    if settings.num_workers is not None:
        return settings.num_workers
    there_mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20
    memory_mb = settings.memory_mb or int(there_mb * SHARE_OF_MEMORY)
    return max(1, min(len(os.sched_getaffinity(0)), memory_mb // MEMORY_EACH_MB))
