"""Hugging Face hub (repository, split, pinned revision) -> local files in a cache of our own."""

import json
import re
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_pipeline.errors import DatasetError
from eval_pipeline.journal.files import swap_in
from eval_pipeline.settings.sections import Hub
from eval_pipeline.text import listed

if TYPE_CHECKING:
    from huggingface_hub import HfApi

HUGGING_FACE = "https://huggingface.co"

_TIMEOUT_S = 30
_SHOWN_FILES = 10
_REFUSED = (401, 403)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_EXTENSIONS = ("parquet", "jsonl", "csv")
_GATED = "the data set is gated; accept the conditions on {page} and put a token into HF_TOKEN"
_GATED_FOR_US = (
    "the token in HF_TOKEN has no access to this gated data set; accept the conditions on {page} "
    "with the token's account, and let the token read gated repositories"
)
_LAYOUTS = (r"data/{split}-[^/]*", r"{split}-[^/]*", r"{split}", r"{split}/[^/]+")


def download(hub: Hub, *, token: str | None, endpoint: str | None, cache: Path) -> list[Path]:
    """The files of a split, sorted by name; a commit that is in the cache needs no network."""
    cache = cache.resolve()
    if cached := _cached(hub, cache):
        return cached
    # Imported late: it is slow, and only those who use the hub should wait for it.
    import httpx2  # noqa: PLC0415
    from huggingface_hub import HfApi, constants  # noqa: PLC0415
    from huggingface_hub.utils.tqdm import disable_progress_bars  # noqa: PLC0415

    # Otherwise it calls home and writes to the user's cache, whatever the endpoint.
    constants.HF_HUB_DISABLE_TELEMETRY = True
    address = endpoint or HUGGING_FACE
    # False and not None: None makes the library look for a token on this machine by itself.
    api = HfApi(endpoint=address, token=token or False)
    try:
        with disable_progress_bars():
            return _fetch(api, hub, cache)
    except (httpx2.HTTPError, OSError, ValueError, LookupError, RuntimeError) as error:
        reason = _explain(error, hub, address, has_token=bool(token))
        raise DatasetError(f"{hub.repository}: {reason}.") from None


def _fetch(api: "HfApi", hub: Hub, cache: Path) -> list[Path]:
    info = api.dataset_info(hub.repository, revision=hub.revision, timeout=_TIMEOUT_S)
    commit = info.sha or ""
    if not _COMMIT.fullmatch(commit):
        raise ValueError("no commit")
    names = _split_files(hub, sorted(file.rfilename for file in info.siblings or ()))
    # The commit and not the revision: a branch may move between two files.
    where: dict[str, Any] = {"repo_type": "dataset", "revision": commit, "cache_dir": cache}
    paths = [Path(api.hf_hub_download(hub.repository, name, **where)) for name in names]
    # Written last: a listing means that all its files were downloaded.
    relative = [path.relative_to(cache).as_posix() for path in paths]
    swap_in(_listing(hub, commit, cache), json.dumps(relative).encode())
    return paths


def _split_files(hub: Hub, present: list[str]) -> list[str]:
    """The files of the first layout that has any, so that a copy in another format is not read."""
    split = re.escape(hub.split)
    for extension, layout in product(_EXTENSIONS, _LAYOUTS):
        pattern = re.compile(layout.format(split=split) + rf"\.{extension}")
        if found := [name for name in present if pattern.fullmatch(name)]:
            return found
    data = [name for name in present if name.endswith(_EXTENSIONS)] or present
    shown = listed(data, _SHOWN_FILES) or "none"
    raise DatasetError(
        f"{hub.repository}: there is no file of the split '{hub.split}' at revision "
        f"{hub.revision}; choose a split of these files: {shown}."
    )


def _listing(hub: Hub, commit: str, cache: Path) -> Path:
    folder = hub.repository.replace("/", "--")
    return cache / "listings" / folder / commit / f"{hub.split}.json"


def _cached(hub: Hub, cache: Path) -> list[Path]:
    """The files of a commit that was downloaded before, or none if any of them is gone."""
    listing = _listing(hub, hub.revision, cache)
    if not _COMMIT.fullmatch(hub.revision) or not listing.is_file():
        return []
    paths = [cache / name for name in json.loads(listing.read_text("utf-8"))]
    return paths if all(path.is_file() for path in paths) else []


def _explain(error: Exception, hub: Hub, address: str, *, has_token: bool) -> str:
    """One sentence that says what to do; never the library's text, which may repeat a secret."""
    from huggingface_hub import errors  # noqa: PLC0415

    page = f"{address}/datasets/{hub.repository}"
    match error:
        case errors.GatedRepoError():
            return (_GATED_FOR_US if has_token else _GATED).format(page=page)
        case errors.RevisionNotFoundError():
            return f"there is no revision '{hub.revision}'; choose one of {page}/commits/main"
        case errors.HfHubHTTPError() if has_token and error.response.status_code in _REFUSED:
            return (
                "the hub does not accept the token in HF_TOKEN; put one that may read this data "
                f"set there, from {address}/settings/tokens"
            )
        case errors.RepositoryNotFoundError():
            access = "the token in HF_TOKEN must have access"
            do = access if has_token else "put a token into HF_TOKEN"
            return f"there is no data set at {page}; check the name, and if it is private, {do}"
        case errors.HfHubHTTPError():
            return f"{address} answered with status {error.response.status_code}; try again later"
        case OSError(errno=int()):
            return f"the files cannot be stored in the cache ({error.strerror})"
        case ValueError() | LookupError():
            return f"{address} does not answer like a Hugging Face hub; check HF_ENDPOINT"
    return (
        f"{address} cannot be reached ({type(error).__name__}); check the network and "
        "HF_ENDPOINT, or pin a full commit that was loaded before"
    )
