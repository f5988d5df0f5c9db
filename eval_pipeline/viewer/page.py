"""What a page is made from, and what it is before it is HTML."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb
from starlette.datastructures import QueryParams

from eval_pipeline.errors import MendableError
from eval_pipeline.journal import Journal
from eval_pipeline.settings import Settings
from eval_pipeline.viewer.at_work import Follower
from eval_pipeline.viewer.links import Links

Row = dict[str, Any]


class NotThereError(MendableError):
    """There is no such model, run or item."""


class AskedError(MendableError):
    """Nobody can tell what is asked for."""


@dataclass(frozen=True)
class View:
    """The results as they are at the moment, and whoever looks at them from where."""

    db: duckdb.DuckDBPyConnection
    settings: Settings
    journal: Journal
    follower: Follower
    links: Links
    asked: QueryParams = field(default_factory=QueryParams)
    """What stands after the ? of the address."""


@dataclass(frozen=True)
class Page:
    """A template, and what it shows."""

    template: str
    title: str
    shown: Mapping[str, Any] = field(default_factory=dict)
