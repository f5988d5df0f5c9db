"""What models are called in figures. Their names come from gateways: any text whatever."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from unicodedata import category

import pandas as pd
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

LONGEST = 42
MOST_LISTED = 20
# A name may be this wide, in the font's size per character; most need less.
_WIDEST = 0.75
_OF_SIZE_ONE = FontProperties(size=1)


def shown(name: str, longest: int = LONGEST) -> str:
    """The name on one line, its middle left out where it is too long."""
    spaced = _without_towers(" ".join(str(name).split()))
    # Control characters break the file, marks of direction turn the words around them.
    clean = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in spaced)
    if len(clean) <= longest:
        return clean
    tail = (longest - 1) // 2
    return f"{clean[: longest - 1 - tail]}…{clean[-tail:]}"


def _without_towers(text: str) -> str:
    """Marks piled on one letter would reach into the rows above: two of them stay."""
    kept: list[str] = []
    for char in text:
        if not all(category(one).startswith("M") for one in [*kept[-2:], char]):
            kept.append(char)
    return "".join(kept)


def fitting(name: str, longest: int = LONGEST) -> str:
    """The name as shown, shorter still where its signs are wide enough to take all room."""
    text, room = shown(name, longest), longest * _WIDEST
    wide, _, _ = text_to_path.get_text_width_height_descent(text, _OF_SIZE_ONE, ismath=False)
    return text if wide <= room else shown(name, max(3, int(longest * room / wide)))


def prepared(
    rows: pd.DataFrame, *numbers: str, longest: int = LONGEST, gap: str = " "
) -> pd.DataFrame:
    """The rows ready to draw: with their labels, the numbers as floats, unknown ones as NaN."""
    if rows.empty:
        return pd.DataFrame(columns=["label", "simulated", *numbers])
    return rows.astype(dict.fromkeys(numbers, float)).assign(
        label=labels(rows, longest, gap=gap), simulated=is_simulated(rows)
    )


def labels(rows: pd.DataFrame, longest: int = LONGEST, *, gap: str = " ") -> list[str]:
    """One label per row: the model and, behind the gap in brackets, what sets the row apart."""
    simulated = is_simulated(rows)
    mixed = simulated.any() and not simulated.all()
    said = []
    for row, invented in zip(rows.to_dict("records"), simulated, strict=True):
        remarks = ", ".join(_remarks(row, simulated=bool(mixed and invented)))
        behind = f"{gap}({remarks})" if remarks else ""
        room = longest if "\n" in gap else longest - len(behind) // 2
        said.append(fitting(row["model"], room) + behind)
    return said


def _remarks(row: Mapping[Hashable, Any], *, simulated: bool) -> Iterator[str]:
    if simulated:
        yield "simulated"
    if row.get("scope") == "text":
        yield "text only"
    experiment = row.get("experiment", "default")
    if isinstance(experiment, str) and experiment != "default":
        yield fitting(experiment, 20)


def is_simulated(rows: pd.DataFrame) -> pd.Series:
    """Whose skill is invented; rows that do not say are of real models."""
    if "simulated" not in rows:
        return pd.Series(False, index=rows.index)  # noqa: FBT003
    return rows["simulated"].eq(True).fillna(False).astype(bool)  # noqa: FBT003


def titled(title: str, rows: pd.DataFrame) -> str:
    """The title, which never hides that models are simulated."""
    simulated = is_simulated(rows)
    if not simulated.any():
        return title
    if simulated.all():
        return f"{title} (SIMULATED models: their skill is invented)"
    return f"{title} (some models are SIMULATED: their skill is invented)"


def listed(names: Iterable[str]) -> str:
    """The names in one sentence, the first of them where there are too many."""
    names = list(names)
    left_out = len(names) - MOST_LISTED
    return ", ".join(names[:MOST_LISTED]) + (f" and {left_out} more" if left_out > 0 else "")


class Subject(NamedTuple):
    """What one row or panel of a figure is about: a model under an experiment, and its data."""

    label: str
    rows: pd.DataFrame


def best_first(rows: pd.DataFrame, *, counted: str) -> list[Subject]:
    """The subjects of labelled rows by accuracy over all they did, `counted` answers per row."""
    told_apart_by = [name for name in ("model", "experiment", "scope") if name in rows]
    subjects = [
        Subject(group["label"].iloc[0], group)
        for _, group in rows.groupby(told_apart_by, dropna=False)
    ]
    return sorted(subjects, key=lambda one: (-_overall(one.rows, counted), one.label))


def _overall(rows: pd.DataFrame, counted: str) -> float:
    return float((rows["accuracy"] * rows[counted]).sum() / rows[counted].sum())
