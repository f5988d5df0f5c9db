"""Renders replies of models as safe HTML: Markdown, formulas, highlighted code, differences.

The input is untrusted. Only the tags, attributes and addresses named here get into the output;
text that cannot be rendered is shown as it is.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from html import unescape
from typing import Any
from xml.etree.ElementTree import Element

import pygments
from latex2mathml.converter import convert_to_element
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Text, _TokenType

from eval_pipeline.text import printable

LONGEST_MARKDOWN = 60_000
"""Characters: rendering longer texts takes too long."""
LONGEST_CODE = 100_000
LONGEST_LOOK_S = 0.1
MOST_LINES = 2_000
LONGEST_FORMULA = 2_000
MOST_FORMULAS = 300
CONTEXT_LINES = 3
# Macros may expand into more than anybody can hold.
_MACROS = re.compile(r"\\(re|provide)?(newcommand|def|let|command|DeclareMathOperator)\b|\\def")
_TAGS = {
    *("math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "ms", "mstyle", "merror", "mpadded"),
    *("mfrac", "msqrt", "mroot", "msub", "msup", "msubsup", "munder", "mover", "munderover"),
    *("mtable", "mtr", "mtd", "mphantom", "menclose", "mmultiscripts", "mprescripts", "none"),
}
_ATTRIBUTES = {
    *("display", "mathvariant", "stretchy", "fence", "form", "width", "height", "depth", "lspace"),
    *("rspace", "columnalign", "rowspacing", "columnspacing", "linethickness", "displaystyle"),
    *("scriptlevel", "minsize", "maxsize", "accent", "accentunder", "notation", "separator"),
    *("largeop", "movablelimits", "symmetric", "columnlines", "rowlines", "align"),
}
_VALUE = re.compile(r"[\w.%+\- ]{1,40}")


def markdown(text: str, longest: int = LONGEST_MARKDOWN, *, breaks: bool = True) -> Markup:
    """Render Markdown with formulas; too long a text is returned as it is.

    With `breaks`, lines end where they end in the text, as models mean it.
    """
    if len(text) > longest:
        return as_text(text)
    try:
        # Safe by construction: HTML is off, and every rule that makes a tag is ours or escapes.
        return Markup(_reader(breaks=breaks).render(printable(text)))  # noqa: S704
    except (RecursionError, ValueError, IndexError):
        return as_text(text)


def as_text(text: str) -> Markup:
    """Return the text as it is, line by line."""
    return Markup('<pre class="text">{}</pre>').format(printable(text))


def code(text: str, path: str) -> Markup:
    """Highlight a file in its language, known by the suffix of its path."""
    return _coloured(text, _lexer(path.rpartition(".")[2]))


def difference(path: str, before: str, after: str) -> Markup | None:
    """Return a unified diff; None if the texts are the same, or too long."""
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > MOST_LINES:
        return None
    names = f"reference/{path}", f"reply/{path}"
    lines = list(unified_diff(old, new, *names, lineterm="", n=CONTEXT_LINES))
    return _coloured("\n".join(lines), get_lexer_by_name("diff")) if lines else None


def colours() -> str:
    """Return the style sheet for code, light and dark."""
    light, dark = (
        HtmlFormatter(style=name).get_style_defs(".code")  # type: ignore[no-untyped-call]
        for name in ("xcode", "github-dark")
    )
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def formula(tex: str, *, block: bool) -> Markup:
    """Render a formula as MathML; one that cannot be parsed is shown as it was written."""
    delimiter = "$$" if block else "$"
    written = Markup('<code class="tex">{}</code>').format(f"{delimiter}{tex}{delimiter}")
    if len(tex) > LONGEST_FORMULA or _MACROS.search(tex):
        return written
    try:
        root = convert_to_element(tex, display="block" if block else "inline")
        return Markup("").join(_mathml(root))
    except Exception:  # noqa: BLE001  (whatever a formula does to the converter, it is shown)
        return written


def _mathml(element: Element) -> Iterator[Markup]:
    """Yield tags and attributes that are known to be harmless; everything else is text."""
    tag = element.tag.rpartition("}")[2]
    known = tag in _TAGS
    if known:
        yield Markup("<{}{}>").format(Markup(tag), _attributes(element))  # noqa: S704
    # The converter has characters as entities in texts.
    yield escape(unescape(element.text or ""))
    for child in element:
        yield from _mathml(child)
        yield escape(unescape(child.tail or ""))
    if known:
        yield Markup("</{}>").format(Markup(tag))  # noqa: S704


def _attributes(element: Element) -> Markup:
    return Markup("").join(
        Markup(' {}="{}"').format(Markup(name), value)  # noqa: S704
        for name, value in element.attrib.items()
        if name in _ATTRIBUTES and _VALUE.fullmatch(value)
    )


class _Renderer(RendererHTML):
    """Renders links without a referrer, formulas as MathML and code highlighted."""

    formulas = 0

    def link_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        token = tokens[idx]
        address = str(token.attrGet("href") or "")
        if not address.startswith(("https://", "http://")):
            return "<a>"
        return str(Markup('<a href="{}" rel="noopener noreferrer nofollow ugc">').format(address))

    def fence(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        language, *_rest = [*tokens[idx].info.split(), ""]
        return str(_coloured(tokens[idx].content, _lexer(language)))

    def code_block(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return str(_coloured(tokens[idx].content, _lexer("")))

    def formula(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        token = tokens[idx]
        self.formulas += 1
        if self.formulas > MOST_FORMULAS:
            return str(escape(f"{token.markup}{token.content}{_CLOSING[token.markup]}"))
        return str(formula(token.content.strip(), block=token.markup in ("$$", "\\[")))


_CLOSING = {"$$": "$$", "$": "$", "\\[": "\\]", "\\(": "\\)"}
"""The delimiters of formulas by their opening, the longer ones first."""


def _read_formula(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  (as it is called)
    """A formula between one of the four pairs of signs that models write."""
    start = state.pos
    opening = next((one for one in _CLOSING if state.src.startswith(one, start)), None)
    if opening is None:
        return False
    end = _end_of_formula(state, start + len(opening), opening)
    if end is None:
        return False
    if not silent:
        token = state.push("formula", "", 0)
        token.markup, token.content = opening, state.src[start + len(opening) : end]
    state.pos = end + len(_CLOSING[opening])
    return True


def _end_of_formula(state: StateInline, start: int, opening: str) -> int | None:
    """Return the end of a formula; $ between words and before numbers is money."""
    closing, text = _CLOSING[opening], state.src
    # What is known not to come any more is not looked for again: there may be thousands.
    if state.env.get("of") is not text:
        state.env.update({"of": text, "unclosed": set()})
    unclosed: set[str] = state.env["unclosed"]
    if closing in unclosed:
        return None
    end = text.find(closing, start, state.posMax)
    if end < 0:
        unclosed.add(closing)
        return None
    if opening == "$" and (
        text[start : start + 1].isspace()
        or text[end - 1].isspace()
        or text[end + 1 : end + 2].isdigit()
    ):
        return None
    return end if end > start else None


def _reader(*, breaks: bool) -> MarkdownIt:
    """Return a new parser each time: it counts, and several threads render."""
    reader = MarkdownIt("commonmark", {"html": False, "breaks": breaks}, renderer_cls=_Renderer)
    # An image would be fetched from wherever a model says.
    reader.enable("table").disable(["image", "html_inline", "html_block"])
    reader.inline.ruler.before("escape", "formula", _read_formula)
    return reader


_LANGUAGES: Mapping[str, str] = {
    **dict.fromkeys(("py", "pyi", "python"), "python"),
    **dict.fromkeys(("ts", "mts", "cts", "typescript"), "typescript"),
    **dict.fromkeys(("js", "mjs", "cjs", "jsx", "tsx", "javascript"), "javascript"),
    **dict.fromkeys(("json", "jsonc"), "json"),
    **dict.fromkeys(("sh", "bash", "shell"), "bash"),
    **{name: name for name in ("toml", "css", "sql", "diff")},
}
"""By suffix, or by the name after a fence; all other text has no colours."""


def _lexer(language: str) -> Lexer:
    return get_lexer_by_name(_LANGUAGES.get(language.casefold(), "text"), stripnl=False)


def _coloured(text: str, lexer: Lexer) -> Markup:
    if len(text) > LONGEST_CODE:
        return as_text(text)
    formatter = HtmlFormatter(cssclass="code", wrapcode=True)
    # Pygments escapes what it colours.
    return Markup(pygments.format(_tokens(printable(text), lexer), formatter))  # noqa: S704


def _tokens(text: str, lexer: Lexer) -> Iterator[tuple[_TokenType, str]]:
    """Yield tokens up to a deadline: highlighting a hostile text could take minutes."""
    until, told = time.monotonic() + LONGEST_LOOK_S, 0
    for kind, value in lexer.get_tokens(text):
        yield kind, value
        told += len(value)
        if time.monotonic() > until:
            yield Text, text[told:]
            return
