"""The filter language of the search box: words into tokens, tokens into nested tuples."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

Node = tuple[Any, ...]

_TOKEN: Final = re.compile(
    r"""(?P<name>[A-Za-z_][A-Za-z0-9_.]*)
      | (?P<integer>-?[0-9]+)
      | (?P<text>'(?:[^']|'')*+')
      | (?P<compare><=|>=|!=|=|<|>)
      | (?P<mark>[(),])""",
    re.VERBOSE,
)
_BLANK: Final = re.compile(r"[ \t\n]*")
_KEYWORDS: Final = frozenset({"and", "or", "not", "in"})


class QueryError(ValueError):
    """A query that can not be read, and where."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(f"{message} at {position}")
        self.position = position


@dataclass(frozen=True)
class _Token:
    kind: str  # a group of the pattern, a keyword or mark itself, or "end"
    text: str
    position: int


def parse(text: str) -> Node:
    """The query as nested tuples."""
    parser = _Parser(_tokens(text))
    node = parser.either()
    parser.take("end")
    return node


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = _after_blanks(text, 0)
    while position < len(text):
        match = _TOKEN.match(text, position)
        # What can not be read is an error only if the parser gets there first.
        word = match.group() if match else text[position]
        tokens.append(_Token(_kind(match), word, position))
        if match is None:
            break
        position = _after_blanks(text, match.end())
    tokens.append(_Token("end", "", len(text)))
    return tokens


def _after_blanks(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position


def _kind(match: re.Match[str] | None) -> str:
    if match is None:
        return "unreadable"
    word = match.group().lower()
    return word if match.lastgroup == "mark" or word in _KEYWORDS else str(match.lastgroup)


class _Parser:
    """One method per level of the grammar, from the loosest to the closest."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0

    def either(self) -> Node:
        return self._joined("or", self._both)

    def take(self, *kinds: str) -> _Token:
        token = self._tokens[self._next]
        if token.kind not in kinds:
            raise QueryError(f"expected {' or '.join(kinds)}", token.position)
        self._next += 1
        return token

    def _at(self, kind: str) -> bool:
        return self._tokens[self._next].kind == kind

    def _both(self) -> Node:
        return self._joined("and", self._negation)

    def _joined(self, keyword: str, operand: Callable[[], Node]) -> Node:
        node = operand()
        while self._at(keyword):
            self.take(keyword)
            node = (keyword, node, operand())
        return node

    def _negation(self) -> Node:
        if self._at("not"):
            self.take("not")
            return ("not", self._negation())
        if self._at("("):
            self.take("(")
            node = self.either()
            self.take(")")
            return node
        return self._comparison()

    def _comparison(self) -> Node:
        field = self.take("name").text
        operator = self.take("compare", "in", "not")
        if operator.kind == "compare":
            return (operator.text, field, self._value())
        if operator.kind == "not":
            self.take("in")
            return ("not", ("in", field, self._values()))
        return ("in", field, self._values())

    def _values(self) -> tuple[int | str, ...]:
        self.take("(")
        values = [self._value()]
        while self.take(",", ")").kind == ",":
            values.append(self._value())
        return tuple(values)

    def _value(self) -> int | str:
        token = self.take("integer", "text")
        if token.kind == "integer":
            return int(token.text)
        return token.text[1:-1].replace("''", "'")
