"""Two texts compared by what they say: how they are decorated, spaced and spelled is set aside."""

import re
import unicodedata
from functools import lru_cache

_MAX_LAYERS = 12
_MAX_NESTED = 5_000
_WORD_LETTERS = 3

_INVISIBLE = re.compile(
    r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
)
_SUPERSCRIPT = re.compile("[\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u207a\u207b]+")
_VULGAR = re.compile("([\u00bc-\u00be\u2150-\u215e])")
_SPELLINGS = tuple(
    (re.compile(pattern), spelling)
    for pattern, spelling in (
        ("\u2044", "/"),
        ("[\u2010-\u2013\u2212]", "-"),
        (r"```[A-Za-z]{1,20}\n", "```\n"),
        (r"\\(?:left|right|displaystyle)(?![A-Za-z])", ""),
        (r"\\[,;!: ]", " "),
        (r"\\[dt]frac", r"\\frac"),
        (r"\^ ?\{?\\circ\}?|\\degree(?![A-Za-z])", "\u00b0"),
        (r"\\(?:times|cdot)(?![A-Za-z])|[\u00d7\u00b7\u22c5]", "*"),
        (r"\\mu(?![A-Za-z]) ?", "\u03bc"),
        (r"\\Omega(?![A-Za-z])", "\u03a9"),
        (r"\\approx(?![A-Za-z])", "\u2248"),
        (r"\\(?:text|textbf|mathrm|mathbf|mathit|mathsf|operatorname) ?\{([^{}]*)\}", r"\1"),
        (r"\\%", "%"),
        (r"\{,\}", ","),
        (r"\^\{([+-]?[0-9]+)\}(?![0-9])", r"^\1"),
        ("[\u201c\u201d\u201e]", '"'),
        ("[\u2018\u2019]", "'"),
    )
)
_LAYERS = (
    *((mark, mark) for mark in ("```", "**", "$$", "$", "`", "*", "_", '"', "'")),
    ("\\(", "\\)"),
    ("\\[", "\\]"),
    ("\\boxed{", "}"),
    ("(", ")"),
)
# Keys and scales keep their name: "a minor" is not "minor".
_ARTICLE = re.compile(r"^(?:the|an?) (?=[^\W\d_]{3})(?!minor|major|flat|sharp)", re.IGNORECASE)
_APPROXIMATION = re.compile(r"\s?\((?:\u2248|\\approx)[^()]{0,80}\)\s?$")
_WORD = re.compile(r"\\?[^\W\d_]+")
_PAIRS = re.compile(r"(?:(.)\1)+", re.IGNORECASE)


def visible(text: str) -> str:
    """The text without characters that nobody can see."""
    return _INVISIBLE.sub("", text)


def without_approximation(text: str) -> str:
    """The text without a rounded value in brackets at its end."""
    return _APPROXIMATION.sub("", text)


@lru_cache(maxsize=1024)
def plain(text: str) -> str:
    """The text without its decoration; case and articles stay."""
    text = visible(text)
    # Before NFKC, which would make 103 of 10 to the power of 3, and 21/2 of two and a half.
    text = _SUPERSCRIPT.sub(lambda digits: f"^{{{unicodedata.normalize('NFKC', digits[0])}}}", text)
    text = unicodedata.normalize("NFKC", _VULGAR.sub(r" \1", text.replace("\u00ba", "\u00b0")))
    for pattern, spelling in _SPELLINGS:
        text = pattern.sub(spelling, text)
    return peeled(" ".join(visible(text).split()))


def peeled(text: str) -> str:
    """The text without the quotes, markers and closing marks around it, unless it is all marks."""
    for _ in range(_MAX_LAYERS):
        inner = _without_a_layer(text)
        if inner in ("", text):
            break
        text = inner
    return text


def _without_a_layer(text: str) -> str:
    text = text.strip().rstrip(" \n,;:")
    if text.endswith(".") and not text.endswith(".."):
        text = text[:-1]
    for marker in ("**", "```"):
        if text.endswith(marker) and text.count(marker) == 1:
            text = text.removesuffix(marker).rstrip()
    for opening, closing in _LAYERS:
        inner = text[len(opening) : -len(closing)]
        if text == opening + inner + closing and _is_whole(inner, opening, closing):
            return inner.strip()
    return text


def _is_whole(inner: str, opening: str, closing: str) -> bool:
    """Whether the two ends belong together; (1, 2) keeps its brackets, which mean something."""
    if len(closing) > 1 or opening == closing:
        return closing not in inner
    if len(inner) > _MAX_NESTED or (opening == "(" and ("," in inner or ";" in inner)):
        return False
    depth = 0
    for character in inner:
        depth += (character == opening[-1]) - (character == closing)
        if depth < 0:
            return False
    return depth == 0


def same_text(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but decoration, spaces, an article and case."""
    one, other = _tight(one), _tight(other)
    if one == other:
        return one != ""
    words = zip(_WORD.findall(one), _WORD.findall(other), strict=False)
    return one.casefold() == other.casefold() and all(
        word == other_word or _case_is_free(word, other_word) for word, other_word in words
    )


def _tight(text: str) -> str:
    return re.sub(r" ?([^\w\s.]) ?", r"\1", _ARTICLE.sub("", plain(text)))


def _case_is_free(*spellings: str) -> bool:
    """Whether it is an ordinary word: MW and mW, Co and CO, aabb and AABB, \\Pi and \\pi differ."""
    return all(
        len(word) >= _WORD_LETTERS
        and (word[1:].islower() or word.isupper())
        and not word.startswith("\\")
        and not _PAIRS.fullmatch(word)
        for word in spellings
    )
