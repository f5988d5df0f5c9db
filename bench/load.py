"""How much is asked, of how slow a server, how many at a time."""

import math
from dataclasses import dataclass

from bench.server import model_names

MODEL = model_names(1)[0]


@dataclass(frozen=True)
class Load:
    """One size of an asking table."""

    questions: int
    latency_s: float
    at_once: int

    @property
    def ideal_s(self) -> float:
        """No client can be faster: so many rounds of so many seconds."""
        return math.ceil(self.questions / self.at_once) * self.latency_s

    @property
    def title(self) -> str:
        latency = f"{self.latency_s * 1000:.0f} ms"
        return f"Asking {self.questions:,} questions, {latency}, {self.at_once} at a time"


LOADS = (Load(1_000, 0.2, 100), Load(2_000, 0.2, 400), Load(5_000, 0.0, 100))
