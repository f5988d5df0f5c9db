"""Numbers and names as the lines of a terminal have room for them; loaded with the bars."""

from rich.cells import cell_len

from eval_pipeline.reporting.names import CUT, beginning
from eval_pipeline.untrusted import printable

SECONDS, MINUTES, HOURS = 60, 60, 24
SMALLEST_USD, SMALL_USD, LARGE_USD = 0.001, 0.1, 100
FEW_A_SECOND, MANY_A_SECOND = 0.1, 9.95


def clock(seconds: float) -> str:
    """A time as clocks show it; of days, no minutes are told."""
    minutes, second = divmod(round(seconds), SECONDS)
    hours, minute = divmod(minutes, MINUTES)
    days, hour = divmod(hours, HOURS)
    if days:
        return f"{days} d {hour} h"
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"


def how_fast(rate: float) -> str:
    """So many a second; where that is next to nothing, so many a minute."""
    if rate < FEW_A_SECOND:
        return f"{rate * SECONDS:.1f}/min"
    return f"{rate:.0f}/s" if rate >= MANY_A_SECOND else f"{rate:.1f}/s"


def dollars(usd: float) -> str:
    """An amount with the digits that matter."""
    if 0 < usd < SMALLEST_USD:
        return f"<${SMALLEST_USD}"
    if usd >= LARGE_USD:
        return f"${usd:.0f}"
    return f"${usd:.3f}" if 0 < usd < SMALL_USD else f"${usd:.2f}"


def percent(done: int, planned: int) -> str:
    """Rounded down: what is not done is not 100 %."""
    return f"{100 * done // planned}%" if planned else ""


def in_one_line(text: str) -> str:
    """Somebody else's words, so that they can do nothing to the lines around them."""
    return " ".join(printable(text).split())


def begun(text: str, width: int) -> str:
    """As much of its beginning as fits, which is counted in the terminal's cells."""
    if cell_len(text) <= width:
        return text
    return beginning(text, width - 1) + CUT if width > 0 else ""


def padded(text: str, width: int, *, right: bool = False) -> str:
    """With spaces up to the width; on the left if it is to stand on the right."""
    spaces = " " * max(0, width - cell_len(text))
    return spaces + text if right else text + spaces
