"""What a line of text names as a file's path, however it is decorated."""

import re
from collections.abc import Collection

# Longer lines are prose; this also bounds what looking at one line can cost.
_LONGEST = 400
_LABEL = re.compile(r"(?:(?:full )?(?:file ?name|file ?path|file|path) ?#?\d{0,3} ?)[:=]\s*", re.I)
_NUMBER = re.compile(r"(?:[-+*]|\d{1,3}[.)])\s+")
_QUOTED = re.compile(r"`([^`]{1,300})`")
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,11}")
_WITHOUT_EXTENSION = {"Dockerfile", "LICENSE", "Makefile", "Procfile"}
_COMMENTS = (("#", ""), ("//", ""), ("/*", "*/"), ("<!--", "-->"), ("--", ""), (";", ""))
_INFO_NAMES = ("title", "path", "file", "filename", "name")


def named_path(line: str, expected: Collection[str] = ()) -> str | None:
    """The path that this line, a heading or a line of its own, is all about."""
    if len(line) > _LONGEST:
        return None
    text = line.strip().strip("#").strip()
    if numbered := _NUMBER.match(text):
        text = text[numbered.end() :]
    return _decorated(text, expected) or _annotated(text, expected)


def path_in_sentence(line: str, expected: Collection[str] = ()) -> str | None:
    """The one path in backticks of a sentence that introduces what follows."""
    text = line.strip()
    if len(text) > _LONGEST or not text.rstrip("*").endswith(":"):
        return None
    found = {_path(quoted, expected, spaces=False) for quoted in _QUOTED.findall(text)} - {None}
    return found.pop() if len(found) == 1 else None


def path_in_info(info: str, expected: Collection[str] = ()) -> str | None:
    """The path that a fence's info string has: title="a.py", python:a.py, or a.py alone."""
    if len(info) > _LONGEST:
        return None
    for word in info.replace("{", " ").replace("}", " ").split():
        name, equals, value = word.partition("=")
        if equals and name.lower() in _INFO_NAMES:
            return _path(value.strip("\"'"), expected, spaces=False)
        # As in {.python}, a word that begins with a dot is a class.
        if not equals and not word.startswith("."):
            _, colon, after = word.partition(":")
            if path := _path((after if colon else word).strip("()"), expected, spaces=False):
                return path
    return None


def path_in_comment(line: str, expected: Collection[str] = ()) -> str | None:
    """The path that a comment at the beginning of a file consists of."""
    text = line.strip()
    if len(text) > _LONGEST or text.startswith("#!"):
        return None
    for opening, closing in _COMMENTS:
        if text.startswith(opening) and text.endswith(closing):
            inner = text.removeprefix(opening).removesuffix(closing).strip()
            return _decorated(inner, expected)
    return None


def _decorated(text: str, expected: Collection[str]) -> str | None:
    text = text.strip("* ")
    if label := _LABEL.match(text):
        text = text[label.end() :]
    text = text.strip("* ").removesuffix(":").strip("* ")
    for quote in ("`", '"', "'"):
        if len(text) > 1 and text.startswith(quote) and text.endswith(quote):
            return _path(text[1:-1], expected, spaces=True)
    return _path(text.replace("\\_", "_"), expected, spaces=False)


def _annotated(text: str, expected: Collection[str]) -> str | None:
    """With words behind it, as in "`a.py` (new)" or "a.py - the parser"."""
    first, _, rest = text.partition(" ")
    if rest.lstrip().startswith(("(", "-", "\N{EN DASH}", "\N{EM DASH}", "[")):
        return _decorated(first, expected)
    return None


def _path(text: str, expected: Collection[str], *, spaces: bool) -> str | None:
    text = text.strip()
    while text.startswith("./"):
        text = text[2:]
    if text in expected:
        return text
    if not text or "://" in text or "`" in text or (not spaces and len(text.split()) > 1):
        return None
    return text if _looks_like_a_path(text) else None


def _looks_like_a_path(text: str) -> bool:
    name = text.replace("\\", "/").rpartition("/")[2]
    # Where a path leads out of the folder it is still a path, to be refused as one.
    absolute = text.startswith("/") and text.count("/") > 1 and name != ""
    leads_away = absolute or text.startswith("../") or "/../" in text
    has_extension = _EXTENSION.fullmatch(name[name.rfind(".") :]) if "." in name else None
    return leads_away or name in _WITHOUT_EXTENSION or has_extension is not None
