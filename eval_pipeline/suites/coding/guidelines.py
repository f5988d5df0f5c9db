"""What models are told about a toolchain before they are asked: a Markdown file in sections."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from eval_pipeline.suites.coding.toolchains.registry import TOOLCHAINS

ALL = "all"
"""The heading of what holds for every toolchain."""

_SECTION = 2
_FENCES = ("```", "~~~")


class GuidelinesError(Exception):
    """Guidelines that can not be read, or a section that they do not have."""


class Section(NamedTuple):
    """One part of the guidelines with its heading, and an estimate of its tokens."""

    name: str
    text: str
    tokens: int


@dataclass(frozen=True)
class Guidelines:
    """The sections of a file in their order, each with the toolchain that it is for."""

    parts: tuple[tuple[str, Section], ...]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads a file; GuidelinesError says what is wrong with it."""
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not valid UTF-8"
            raise GuidelinesError(
                f"{path.name}: the guidelines can not be read: {reason}."
            ) from None
        return cls.parse(text, path.name)

    @classmethod
    def parse(cls, text: str, source: str = "guidelines") -> Self:
        """Reads a text whose level-1 headings are toolchains and level-2 headings sections."""
        guidelines = cls(tuple(_parts(text, source)))
        for toolchain in sorted({ALL, *TOOLCHAINS}):
            names = [section.name for section in guidelines.sections(toolchain)]
            if twice := [name for name in names if names.count(name) > 1]:
                raise GuidelinesError(
                    f"{source}: two sections for {toolchain} are named '{twice[0]}'."
                )
        return guidelines

    def sections(self, toolchain: str) -> tuple[Section, ...]:
        """The sections that hold for a toolchain."""
        return tuple(section for owner, section in self.parts if owner in (ALL, toolchain))

    def text(self, toolchain: str) -> str:
        """All that holds for a toolchain."""
        return "\n\n".join(section.text for section in self.sections(toolchain))

    @property
    def whole(self) -> str:
        """All that there is, for questions, which have no toolchain."""
        return "\n\n".join(section.text for _, section in self.parts)

    def without(self, section: str) -> Self:
        """The same without a section, in whichever toolchains it is."""
        rest = tuple(part for part in self.parts if part[1].name != section)
        if len(rest) == len(self.parts):
            known = ", ".join(dict.fromkeys(part.name for _, part in self.parts))
            raise GuidelinesError(f"There is no section '{section}'; there are: {known}.")
        return type(self)(rest)


def estimated_tokens(text: str) -> int:
    """About four characters a token, as English and code have on average."""
    return -(-len(text) // 4)


def _parts(text: str, source: str) -> Iterator[tuple[str, Section]]:
    """Every section; what stands before the first one of a toolchain has the toolchain's name."""
    parts: list[tuple[str, str, list[str]]] = [(ALL, ALL, [])]
    divided = False
    for line, level in _lines(text):
        heading = line.lstrip("#").strip()
        known = level == 1 and heading.lower() in (ALL, *TOOLCHAINS)
        if level == 1 and divided and not known:
            toolchains = ", ".join((ALL, *TOOLCHAINS))
            raise GuidelinesError(f"{source}: '{line}' is no toolchain; there are {toolchains}.")
        divided = divided or known
        if known:
            parts.append((heading.lower(), heading.lower(), []))
        elif level == _SECTION:
            parts.append((parts[-1][0], heading, [line]))
        else:
            parts[-1][2].append(line)
    for owner, name, lines in parts:
        if body := "\n".join(lines).strip():
            yield owner, Section(name, body, estimated_tokens(body))


def _lines(text: str) -> Iterator[tuple[str, int]]:
    """Each line with its level as a heading, 0 if it is none; in code there are no headings."""
    fence = ""
    for line in text.removeprefix("\ufeff").splitlines():
        marks = len(line) - len(line.lstrip("#"))
        if fence:
            fence = "" if line.strip() == fence else fence
        elif line.startswith(_FENCES):
            fence = line[0] * (len(line) - len(line.lstrip(line[0])))
        elif line[marks : marks + 1] == " ":
            yield line, marks
            continue
        yield line, 0
