"""What a command printed, as text that can be shown anywhere."""

import re

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor movements
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links and other strings
    r"|\x1b[ -/]*[0-~]"
)
# Controls but for tab and line feed; what turns the reading direction around or can not be seen.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_CUT = "\n[... {} characters cut ...]\n"


def clean(raw: bytes, limit: int) -> str:
    """The bytes as text without escapes and controls; of a long one the beginning and the end."""
    text = raw.decode("utf-8", errors="replace").replace("\r\n", "\n")
    return cut(_UNSEEN.sub("", _ESCAPES.sub("", text)), limit)


def cut(text: str, limit: int) -> str:
    """At most so many characters: errors stand at the end, what led to them at the beginning."""
    if len(text) <= limit:
        return text
    note = _CUT.format(len(text) - limit)
    room = max(0, limit - len(note))
    head, tail = room - room // 2, room // 2
    return (text[:head] + note + text[len(text) - tail :])[:limit]
