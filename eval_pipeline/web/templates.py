"""Renders pages as HTML: the templates, and the formats of numbers, times and names in them."""

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from eval_pipeline.results.svg import STYLE
from eval_pipeline.results.tables.format import SCOPES, one_line, rank_range
from eval_pipeline.text import printable
from eval_pipeline.web import routes
from eval_pipeline.web.markup import as_text, code, colours, difference, markdown
from eval_pipeline.web.routes import Links, Page

HERE = Path(__file__).parent
STATIC = HERE / "static"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'"
)
"""The Content-Security-Policy: pages load our own files only, and run nothing inline."""
NOTHING = "\N{EN DASH}"
LONGEST_LINE = 160
SMALLEST_CHANCE = 0.001


def render(page: Page, at: Links) -> str:
    """Return the HTML of a page, with links relative to its address."""
    template = _templates().get_template(page.template)
    return template.render(
        {**page.shown, "title": page.title, "at": at, "to": at.to, "policy": POLICY}
    )


@cache
def static_files() -> Mapping[str, bytes]:
    """Return the style sheets, the script and the icon by name."""
    found = {path.name: path.read_bytes() for path in sorted(STATIC.iterdir())}
    style = found["style.css"] + STYLE.encode()
    return {**found, "style.css": style, "code.css": colours().encode()}


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {name: _or_dash(form) for name, form in FORMATS.items()}
    environment.filters |= {"chance": chance, "line": line, "scope": _scope, "text": printable}
    environment.filters |= {"markdown": markdown, "as_text": as_text, "code": code, "json": _json}
    environment.globals |= {"path": routes, "rank_range": rank_range, "difference": difference}
    return environment


def _usd(amount: float) -> str:
    """Small amounts have more digits."""
    return f"{amount:,.2f}" if amount >= 1 else f"{amount:.4f}"


def _seconds(duration: float) -> str:
    return f"{duration:.1f} s" if duration >= 1 else f"{duration:.2f} s"


def _or_dash(form: Callable[..., str]) -> Callable[..., str]:
    """Make a format that shows a missing value as a dash."""
    return lambda value, *given: NOTHING if value is None else form(value, *given)


FORMATS: Mapping[str, Callable[..., str]] = {
    "percent": lambda share, digits=1: f"{100 * share:.{digits}f}%",
    "points": lambda difference: f"{100 * difference:+.1f}",
    "usd": _usd,
    "seconds": _seconds,
    "whole": lambda number: f"{number:,.0f}",
    "decimals": lambda number, digits=3: f"{number:.{digits}f}",
    "minute": lambda moment: f"{moment:%Y-%m-%d %H:%M}",
    "day": lambda moment: f"{moment:%Y-%m-%d}",
}
"""The formats of numbers and times (UTC)."""


def chance(p_value: float) -> str:
    """Format a p-value; one too small for its digits is not 0."""
    return f"{p_value:.3f}" if p_value >= SMALLEST_CHANCE else f"< {SMALLEST_CHANCE}"


def line(text: Any, longest: int = LONGEST_LINE) -> str:
    """Return the beginning of a text without its line breaks."""
    if text is None:
        return ""
    return one_line(printable(str(text)[: 4 * longest]), longest)


def _scope(name: str) -> str:
    """Return the part of the benchmark that a run covers, if not all."""
    return SCOPES.get(name, "")


def _json(value: object) -> Markup:
    return code(json.dumps(value, indent=2, ensure_ascii=False, default=str), "x.json")
