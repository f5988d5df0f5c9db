"""What tables are made of: cells, numbers and names as people read them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from eval_pipeline.reporting.fitting import Cell, Column, FittedTable
from eval_pipeline.untrusted import printable

LONGEST_CELL = 300
THOUSAND, MILLION = 1_000, 1_000_000
SMALL_USD, LARGE_USD = 1, 100
SCOPES = {"text": "text only", "filtered": "only a part"}


def a_table(
    title: str,
    *columns: str,
    right: Sequence[str] = (),
    prose: Sequence[str] = (),
    dropped_first: Sequence[str] = (),
    caption: str = "",
) -> FittedTable:
    """An empty table; in a narrow terminal prose wraps, models are cut, and some columns go."""
    made = [
        Column(place, name, right=name in right, prose=name in prose)
        for place, name in enumerate(columns)
    ]
    dropped = [name for name in dropped_first if name in columns]
    return FittedTable(printable(title), made, dropped, caption)


def cell(text: object) -> Cell:
    """What somebody else may have had a hand in, as it is: no markup, nothing to be obeyed."""
    return Cell(printable(str(text)))


def named(model: str, more: str = "") -> Cell:
    """A model's name, which may be cut, and what must be known besides, which may not."""
    return Cell(printable(more), name=" ".join(printable(model).split()))


def one_line(text: str, longest: int = LONGEST_CELL) -> str:
    """The words of a text without its line breaks, cut where it is long."""
    words = " ".join(text[: 4 * longest].split())
    return words if len(words) <= longest else f"{words[: longest - 2]} …"


def number(value: float | None, form: str) -> str:
    """A number if there is one."""
    return "-" if value is None or value != value else form.format(value)  # noqa: PLR0124  (NaN)


def minute(moment: datetime | None) -> Cell:
    """A time to the minute."""
    return Cell("") if moment is None else Cell(f"{moment:%Y-%m-%d %H:%M}", f"{moment:%m-%d %H:%M}")


def accuracy(row: Mapping[Any, Any]) -> Cell:
    """A share with its 95 % interval, if anything was judged."""
    if row["accuracy"] is None:
        return Cell("-")
    share, low, high = row["accuracy"], row["accuracy_low"], row["accuracy_high"]
    short = f"{share:.1%} ({100 * low:.0f}-{100 * high:.0f})"
    return Cell(f"{share:.1%} ({low:.0%} to {high:.0%})", short)


def usd(amount: float | None, known: float | None = None) -> Cell:
    """An amount of money; if only a part of it is known, more than that."""
    if amount is not None and amount == amount:  # noqa: PLR0124  (NaN)
        return Cell(f"{amount:.4f}", _few_digits(amount))
    return Cell("-") if not known else Cell(f">{known:.4f}", f">{_few_digits(known)}")


def about(count: int) -> str:
    """Roughly how many."""
    if count >= MILLION:
        return f"{count / MILLION:,.1f} M"
    return f"{count / THOUSAND:.1f} k" if count >= THOUSAND else str(count)


def rank_range(low: int, high: int) -> str:
    """The places that the data allow."""
    return str(low) if low == high else f"{low}-{high}"


def remarks(row: Mapping[Any, Any], *, all_simulated: bool, more: str = "") -> str:
    """What must be known of a row besides the model's name."""
    return in_brackets(
        "simulated" if row["simulated"] and not all_simulated else "",
        SCOPES.get(row["scope"], ""),
        "" if row["experiment"] == "default" else row["experiment"],
        more,
    )


def in_brackets(*said: str) -> str:
    """What there is to say, behind a name."""
    told = ", ".join(filter(None, said))
    return f" ({told})" if told else ""


def _few_digits(amount: float) -> str:
    if amount >= LARGE_USD:
        return f"{amount:.0f}"
    return f"{amount:.2f}" if amount >= SMALL_USD else f"{amount:.4f}"
