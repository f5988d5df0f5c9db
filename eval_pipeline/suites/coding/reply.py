"""A model's reply -> the files in it, in whichever of the usual ways they are written."""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from eval_pipeline.records.coding import Files

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
    first, _, rest = text.partition(" ")
    # Words may be behind it, as in "`a.py` (new)" or "a.py - the parser".
    is_annotated = rest.lstrip().startswith(("(", "-", "\N{EN DASH}", "\N{EM DASH}", "["))
    return _decorated(text, expected) or (_decorated(first, expected) if is_annotated else None)


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


# Every expression is matched at the beginning of a line and repeats one thing at a time, so that
# a reply of any size and any content is read in a time that grows with its length only.
_FENCE = re.compile(r"( *)(`{3,}|~{3,})(.*)", re.DOTALL)
_FILE_TAG = re.compile(r"\s*<file\s+(?:path|name|filename)=[\"']([^\"'<>]{1,300})[\"']\s*>", re.I)
_THOUGHT = re.compile(r"\s*<(think|thinking)>", re.I)
_THOUGHT_ENDS = re.compile(r"</(?:think|thinking)>", re.I)
_LANGUAGES = {"py": ("python", "py", "python3"), "ts": ("typescript", "ts"), "js": ("javascript",)}
_NO_HEADING = 7
_MARKDOWN = (".md", ".mdx", ".markdown")


CODE_ONLY = (
    "The reply has code, but does not say which file it is: every file needs a heading with its "
    "path before its block of code."
)
NO_FILE = "The reply has no file: a heading with its path, then a block of code."


class UnreadableReply(Exception):  # noqa: N818
    """No files can be found in a reply; says what was looked for."""


def read_files(reply: str, expected: Sequence[str] = ()) -> Files:
    """The files of a reply by their paths; of a path that comes twice, the last one.

    A lone block of code without a path is the expected file if exactly one is expected.
    """
    text = reply.replace("\r\n", "\n").removeprefix("\ufeff")
    if files := _from_json(text):
        return files
    found = _Reader(text.split("\n"), expected).read()
    for part in found:
        if files := part.files(expected):
            return files
    raise UnreadableReply(CODE_ONLY if any(part.loose for part in found) else NO_FILE)


class _Block(NamedTuple):
    """A fenced block: what follows its fence on the same line, and what is in it."""

    info: str
    text: str


@dataclass
class _Found:
    """What a reply has: files that are named, files that may be meant, code without a name."""

    named: Files = field(default_factory=dict)
    meant: Files = field(default_factory=dict)
    loose: list[_Block] = field(default_factory=list)

    def files(self, expected: Sequence[str]) -> Files:
        if self.named:
            # An example behind the files may look as if it was meant to be one.
            meant = {path: text for path, text in self.meant.items() if path in expected}
            return {**meant, **self.named}
        if self.meant:
            return self.meant
        for block in self.loose:
            if files := _from_json(block.text):
                return files
        lone = self._lone(expected[0]) if len(expected) == 1 else None
        return {expected[0]: lone.text} if lone else {}

    def _lone(self, path: str) -> _Block | None:
        """The only block, or the only one in the language of the file."""
        extension = path.rpartition(".")[2]
        known = _LANGUAGES.get(extension, (extension,))
        fitting = [block for block in self.loose if block.info.lower() in known]
        candidates = self.loose if len(self.loose) == 1 else fitting
        return candidates[0] if len(candidates) == 1 else None


class _Reader:
    """Goes through the lines once."""

    def __init__(self, lines: list[str], expected: Collection[str]) -> None:
        self._lines, self._expected = lines, expected
        self._at = 0
        self._found = _Found()
        # What was found before the heading "Files", of use only if nothing comes after it.
        self._before: _Found | None = None
        # The path that a heading of this level has named, and that no block has taken yet.
        self._path: str | None = None
        self._level = 0
        self._sentence = ""

    def read(self) -> list[_Found]:
        """What was found, the best of it first."""
        while self._at < len(self._lines):
            if line := self._next():
                self._read_line(line)
        return [self._found, *([self._before] if self._before else [])]

    def _next(self) -> str:
        self._at += 1
        return self._lines[self._at - 1]

    def _read_line(self, line: str) -> None:
        fence = _FENCE.match(line)
        if fence and not (fence[2][0] == "`" and "`" in fence[3]):
            self._take(_Block(fence[3].strip(), self._fenced(fence)))
        elif tag := _FILE_TAG.match(line):
            self._found.named[_plain(tag[1])] = self._tagged(line[tag.end() :])
        elif _THOUGHT.match(line):
            self._skip_thought(line)
        elif _THOUGHT_ENDS.fullmatch(line.strip()):
            # The opening tag was in the prompt: all of this was thought and not said.
            self._found, self._before, self._path = _Found(), None, None
        elif line.strip():
            self._read_text(line)

    def _read_text(self, line: str) -> None:
        _, heading, last = line.rpartition("#")
        # Some have words right before "# Files".
        if self._before is None and heading and last.strip(" \t:*").lower() == "files":
            self._before, self._found, self._path = self._found, _Found(), None
            return
        text = line.lstrip()
        level = len(text) - len(text.lstrip("#")) or _NO_HEADING
        if path := named_path(line, self._expected):
            self._path, self._level = path, level
        elif level <= min(self._level, _NO_HEADING - 1):
            self._path = None
        self._sentence = line

    def _take(self, block: _Block) -> None:
        first = block.text.partition("\n")[0]
        if path := self._path or path_in_info(block.info, self._expected):
            self._found.named[path] = block.text
        elif path := (
            path_in_comment(first, self._expected)
            or path_in_sentence(self._sentence, self._expected)
        ):
            self._found.meant[path] = block.text
        else:
            self._found.loose.append(block)
        self._path, self._sentence = None, ""

    def _fenced(self, fence: re.Match[str]) -> str:
        """What is between a fence and the one that closes it, or the end of the reply."""
        indent, mark = len(fence[1]), fence[2]
        # A Markdown file has fences of its own, which not everyone puts into a longer one.
        path = self._path or path_in_info(fence[3].strip(), self._expected) or ""
        nests = path.lower().endswith(_MARKDOWN)
        taken: list[str] = []
        depth = 1
        while self._at < len(self._lines):
            line = self._next()
            inner = _FENCE.match(line)
            if inner and inner[2].startswith(mark) and len(inner[1]) <= indent + 3:
                depth += 0 if inner[3].strip() else -1
                depth += 1 if nests and inner[3].strip() else 0
                if depth == 0:
                    break
            taken.append(_unindented(line, indent))
        else:
            # Cut off, or the line break at the end of the reply.
            taken = taken[:-1] if taken and not taken[-1] else taken
        return "".join(f"{line}\n" for line in taken)

    def _tagged(self, rest: str) -> str:
        """What is between <file> and </file>, without a fence if there is one around all of it."""
        taken = [rest] if rest.strip() else []
        while not (taken and taken[-1].rstrip().endswith("</file>")):
            if self._at == len(self._lines):
                break
            taken.append(self._next())
        else:
            taken[-1] = taken[-1].rstrip().removesuffix("</file>")
        while taken and not taken[-1].strip():
            taken.pop()
        return _without_fence(taken)

    def _skip_thought(self, line: str) -> None:
        at = 0
        while True:
            while not (ending := _THOUGHT_ENDS.search(line, at)):
                if self._at == len(self._lines):
                    return
                line, at = self._next(), 0
            at = ending.end()
            if not _THOUGHT.match(line, at):
                break
        if rest := line[at:].strip():
            self._at -= 1
            self._lines[self._at] = rest


def _unindented(line: str, indent: int) -> str:
    return line[min(indent, len(line) - len(line.lstrip(" "))) :] if indent else line


def _without_fence(lines: list[str]) -> str:
    opening, closing = (_FENCE.fullmatch(lines[0]), lines[-1].strip()) if lines else (None, "")
    if opening and len(lines) > 1 and closing == opening[2]:
        lines = lines[1:-1]
    return "".join(f"{line}\n" for line in lines)


def _plain(path: str) -> str:
    return path.strip().removeprefix("./")


def _from_json(text: str) -> Files:
    """The files of {"files": {path: text}}, or of a list of objects with path and content."""
    if not text.lstrip().startswith(("{", "[")):
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    files = value.get("files") if isinstance(value, dict) else value
    if isinstance(files, dict):
        return {_plain(path): text for path, text in files.items() if isinstance(text, str)}
    return dict(_entries(files)) if isinstance(files, list) else {}


def _entries(entries: list[object]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        match entry:
            case {"path": str(path), "content": str(text)} | {
                "name": str(path),
                "content": str(text),
            }:
                yield _plain(path), text
