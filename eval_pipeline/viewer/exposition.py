"""Measurements in the text format that Prometheus reads."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Sample(NamedTuple):
    """A number, and what tells it from the others of its family."""

    value: float
    labels: Mapping[str, str] = {}
    # Of a histogram: which part of it this is.
    part: str = ""


@dataclass(frozen=True)
class Family:
    """Numbers of one name."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    about: str
    samples: Iterable[Sample]


def exposed(families: Iterable[Family]) -> str:
    """All of them as text."""
    return "".join(f"{line}\n" for family in families for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {family.about}"
    yield f"# TYPE {family.name} {family.kind}"
    for one in family.samples:
        labels = ",".join(f'{name}="{_escaped(text)}"' for name, text in one.labels.items())
        name = f"{family.name}{one.part}"
        yield f"{name}{{{labels}}} {number(one.value)}" if labels else f"{name} {number(one.value)}"


def number(value: float) -> str:
    """As Prometheus writes it."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
