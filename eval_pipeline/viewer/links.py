"""Where pages are: a path for every model, run and item, which is also a path of static files.

Names of models, suites and items are somebody else's: in a path they are letters, digits and a few
signs, and everything else is spelled as =XX, which no server or file system takes for anything.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import md5
from urllib.parse import urlencode

LONGEST = 200
"""Characters of a part of a path: longer names are hashed, for files may not be called so."""
HASHED = "=-"
_PLAIN = re.compile(r"[A-Za-z0-9_-]")
_ALL_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_SPELLED = re.compile(r"=([0-9A-F]{2})")
INDEX = "index.html"


class BadPathError(ValueError):
    """No name is spelled like that."""


@lru_cache(maxsize=10_000)
def spelled(name: str) -> str:
    """A name as one part of a path."""
    if len(name) <= LONGEST and _ALL_PLAIN.fullmatch(name):
        return name
    spelling = "".join(
        one if _PLAIN.match(one) or (one == "." and place) else _hex(one)
        for place, one in enumerate(name)
    )
    if not spelling or len(spelling) > LONGEST:
        return HASHED + hashed(name)
    return spelling


def meant(part: str) -> str:
    """The name that a part of a path spells; of a hashed one, that it is one: see `is_hashed`."""
    if is_hashed(part):
        return part
    raw = _SPELLED.sub(lambda found: chr(int(found[1], 16)), part)
    try:
        name = raw.encode("latin-1").decode("utf-8")
    except UnicodeError:
        raise BadPathError(part) from None
    if spelled(name) != part:
        raise BadPathError(part)
    return name


def is_hashed(part: str) -> bool:
    """Whether the part stands for a name that is too long to be spelled."""
    return part.startswith(HASHED)


def names(part: str, name: str) -> bool:
    """Whether a part of a path, as `meant` has it, means that name."""
    return part == HASHED + hashed(name) if is_hashed(part) else part == name


def hash_in(part: str) -> str | None:
    """The hash in a part that stands for a long name."""
    return part.removeprefix(HASHED) if is_hashed(part) else None


def hashed(name: str) -> str:
    """What stands for a long name; DuckDB's md5 says the same."""
    return md5(name.encode(), usedforsecurity=False).hexdigest()


def _hex(character: str) -> str:
    return "".join(f"={byte:02X}" for byte in character.encode())


@dataclass(frozen=True)
class Links:
    """The addresses of pages as seen from the page at `path`; static files name each index."""

    path: str
    static: bool = False
    leaves: bool = True
    """Whether items have pages of their own."""

    @property
    def root(self) -> str:
        """From here to the first page."""
        return "../" * self.path.count("/") or "./"

    def to(self, path: str, **given: str | list[str] | None) -> str:
        """To a page (a path that ends in /, or is empty), or to a file."""
        asked = {name: value for name, value in given.items() if value}
        query = f"?{urlencode(asked, doseq=True)}" if asked else ""
        index = INDEX if self.static and (path.endswith("/") or not path) else ""
        # What is below this page is named from here: a page may have thousands of such links.
        below = self.path and path.startswith(self.path)
        start = path.removeprefix(self.path) or "./" if below else f"{self.root}{path}"
        return f"{start}{index}{query}"


def model_path(model: str) -> str:
    """The page of a model."""
    return f"models/{spelled(model)}/"


def runs_path(page: int = 1) -> str:
    """A page of the list of all runs."""
    return "runs/" if page == 1 else f"history/{page}/"


def run_path(run_id: str, model: str | None = None) -> str:
    """The page of a run of one model; without one, of all that the launch opened."""
    return f"runs/{spelled(run_id)}/" + (f"{spelled(model)}/" if model else "")


def report_path(run_id: str, model: str) -> str:
    """The report on why items of a run failed."""
    return f"{run_path(run_id, model)}report/"


def items_path(run_id: str, model: str, show: str, page: int = 1) -> str:
    """A page of the list of a run's replies."""
    return f"{run_path(run_id, model)}items/{show}/{page}/"


def reply_path(run_id: str, model: str, suite: str, item_id: str) -> str:
    """The page of an item in a run."""
    return f"{run_path(run_id, model)}item/{spelled(suite)}/{spelled(item_id)}/"


def item_path(suite: str, item_id: str) -> str:
    """The page of an item across models."""
    return f"items/{spelled(suite)}/{spelled(item_id)}/"


def image_path(suite: str, item_id: str, form: str) -> str:
    """The image of an item, a file."""
    return f"{item_path(suite, item_id)}image.{form}"


def slice_path(suite: str | None = None, category: str | None = None) -> str:
    """The leaderboard, or that of a suite, or of a category of it."""
    parts = [spelled(name) for name in (suite, category) if name is not None]
    return "".join(f"{part}/" for part in ("leaderboard", *parts)) if parts else ""


def version_path(version: str) -> str:
    """The leaderboard of an older benchmark version."""
    return f"versions/{spelled(version)}/"


def pair_path(one: str, other: str) -> str:
    """Two models side by side, as one page."""
    return f"compare/{spelled(one)}/{spelled(other)}/"
