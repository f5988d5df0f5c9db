"""An item: in one run with all that is known of it, and across models."""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

from markupsafe import Markup
from pydantic import JsonValue

from eval_pipeline.analysis.evidence import Case, look_into
from eval_pipeline.analysis.failures import classified
from eval_pipeline.evaluation.item import facts
from eval_pipeline.evaluation.item_prompt import Chosen, image_name, text_of
from eval_pipeline.interop.remote.messages import parse_hashed
from eval_pipeline.journal.files import JournalError
from eval_pipeline.records.coding import CodingTask, Files
from eval_pipeline.records.item import ItemKey
from eval_pipeline.results.queries import query, rows
from eval_pipeline.suites.benchmark import past_items
from eval_pipeline.web.markup import as_text, code, markdown
from eval_pipeline.web.routes import NotThereError, Page, Parts, Row, View, find_model

_IMAGE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,")
MOST_FILES = 20
"""So many are shown in colours; more of them are only named."""
_items = lru_cache(maxsize=4)(past_items)
"""The places of a version's items in its files, which never change."""


def reply(view: View, at: Parts) -> Page:
    """Show an item in a run, from the prompt to the verdict."""
    run_id, model = at["run_id"], find_model(view, at["model"])
    chosen = Chosen(run_id, model, planned(view, run_id, model, at["suite"], at["item_id"]))
    try:
        case = look_into(view.db, view.settings, view.journal, chosen, items=_items)
    except (JournalError, KeyError):
        raise NotThereError("The journal has no such item any more.") from None
    report = case.report
    return Page(
        "reply.html",
        f"{chosen.key.item_id} in run {run_id[:8]} of {model}",
        {
            "case": case,
            "run": report.run,
            "item": report.item,
            "image": image_form(report.item.image),
            "image_words": image_name(report.item.image) if report.item.image else "",
            "inexact": any(one.prompt_is_exact is False for one in report.replies),
            **chosen.key._asdict(),
            "text_of": text_of,
            "reference": _reference(report.item.answer, getattr(report.item, "rationale", "")),
            "answer_files": report.item.answer if isinstance(report.item, CodingTask) else {},
            "most_files": MOST_FILES,
            "facts": facts,
            "request_of": partial(_request, case),
            "classified": classified,
            "others": others(view, chosen.key),
            "simulated": report.run["simulated"],
        },
    )


def item(view: View, at: Parts) -> Page:
    """Show what every model replied to an item, side by side."""
    known = find_item(view, at["suite"], at["item_id"])
    is_code = known["kind"] == "coding"
    found = others(view, ItemKey(known["suite"], known["item_id"]))
    return Page(
        "item.html",
        f"{known['suite']}/{known['item_id']}",
        {
            "item": known,
            "suite": known["suite"],
            "item_id": known["item_id"],
            "image": image_form(known["image"]),
            "reference": _reference(json.loads(known["answer"]) if is_code else known["answer"]),
            "others": found,
            "simulated": any(one["simulated"] for one in found),
        },
    )


def find_item(view: View, suite: str, item_id: str) -> Row:
    """Return the item of that name, as it was loaded last."""
    found = rows(query(view.db, "viewer/item_known", _named(suite, item_id)))
    if not found:
        raise NotThereError(f"There is no item {suite}/{item_id}.")
    return found[0]


def others(view: View, key: ItemKey) -> list[Row]:
    """Return what each model replied in its latest run that has a reply."""
    return rows(query(view.db, "viewer/item_everywhere", key._asdict()))


def image_form(uri: str | None) -> str | None:
    """Return the suffix of an image's file; None if its type is not safe to send to a browser."""
    found = _IMAGE.match(uri or "")
    return found[1] if found else None


def image(view: View, at: Parts) -> bytes:
    """Return the image of an item."""
    uri = find_item(view, at["suite"], at["item_id"])["image"]
    if image_form(uri) != at["form"]:
        raise NotThereError("That item has no such image.")
    try:
        return base64.b64decode(uri.partition(",")[2], validate=True)
    except binascii.Error:
        raise NotThereError("The image of that item is broken.") from None


def planned(view: View, run_id: str, model: str, suite: str, item_id: str) -> ItemKey:
    """Return the item of the run's plan, also if its parts are hashes of long names."""
    given = {"run_id": run_id, "model": model, **_named(suite, item_id)}
    found = query(view.db, "viewer/planned_item", given).fetchone()
    if found is None:
        raise NotThereError(f"Run {run_id[:8]} of {model} has no item {suite}/{item_id}.")
    return ItemKey(*found)


def _named(suite: str, item_id: str) -> Row:
    """Return the parts as query parameters: names, and the hashes of long ones."""
    parts = {"suite": suite, "item_id": item_id}
    return {**parts, "suite_hash": parse_hashed(suite), "item_hash": parse_hashed(item_id)}


def _reference(answer: str | Files, rationale: str = "") -> list[tuple[str, Markup]]:
    if not isinstance(answer, str):
        return [(path, code(text, path)) for path, text in answer.items()]
    found = [("Answer", as_text(answer))]
    return [*found, ("Rationale", markdown(rationale))] if rationale else found


def _request(case: Case, sample: int) -> JsonValue:
    """Return the request as it would be sent now, with images named, to compare prompts."""
    make = case.report.prompt.request
    return None if make is None else _without_images(make(sample))


def _without_images(value: Any) -> JsonValue:
    match value:
        case {"type": "image_url", "image_url": {"url": str(uri)}}:
            return image_name(uri)
        case Mapping():
            return {str(name): _without_images(one) for name, one in value.items()}
        case list() | tuple():
            return [_without_images(one) for one in value]
        case _:
            return value  # type: ignore[no-any-return]
