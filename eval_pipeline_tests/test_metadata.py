"""What the UI is told: the words of servers are shown as they are, whatever they look like."""

import re
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from eval_pipeline.defs.metadata import listed, markdown, tallied
from eval_pipeline.evaluation.workers import StageProgress

HOSTILE = [
    "![seen](http://127.0.0.1/pixel.png)",
    "[click](javascript:alert(1))",
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "a | b | c",
    "one\n\n# Two\n\n| three |\n|---|\n| four |",
    "first\r\n- second\u2028third",
    "`code` *bold* _soft_ ~~gone~~ &lt;b&gt; \\",
    "\\<img src=x> \\| \\\\| \\![a](b)",
    "<http://127.0.0.1/>",
    "[^1] [1]: http://127.0.0.1/",
    "1e99",
]
# Of marks, of what ends a line or a cell, and of anything else.
TEXTS = st.lists(
    st.one_of(
        st.sampled_from([*HOSTILE, *"\\`*_[]()<>|#~&!-+=:.\n\t "]),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5),
    ),
    max_size=8,
).map("".join)


def rendered(text: str | None) -> str:
    """As HTML, with all of Markdown that a page may show."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    html: str = parser.render(text or "")
    return html


def parts(html: str, tag: str) -> list[str]:
    """The texts of all elements of that kind, which may not hold any other."""
    inside = re.findall(rf"<{tag}(?: style=\"[a-z:-]*\")?>([^<>]*)</{tag}>", html)
    return [unescape(text) for text in inside]


def tags(html: str) -> set[str]:
    return set(re.findall(r"<(\w+)", html))


def in_one_line(text: str) -> str:
    return " ".join(text.split())


@settings(deadline=None, max_examples=200)
@given(TEXTS, TEXTS)
def test_a_list_shows_texts_as_they_are(one: str, other: str) -> None:
    # As our own sentences do, which begin with whom they are about.
    told = [f"lab/m: {one}", f"lab/m: {other}"]

    html = rendered(listed(told).value)

    assert tags(html) == {"ul", "li"}
    assert parts(html, "li") == list(map(in_one_line, told))


@settings(deadline=None, max_examples=200)
@given(TEXTS, TEXTS)
def test_a_table_shows_texts_as_they_are(one: str, other: str) -> None:
    lines = [{"model": "lab/m", "error": one, "done": 1}, {"model": other, "error": "", "done": 2}]

    html = rendered(markdown(lines).value)

    assert tags(html) == {"table", "thead", "tbody", "tr", "th", "td"}
    expected = ["lab/m", in_one_line(one), "1", in_one_line(other), "", "2"]
    assert parts(html, "td") == expected


@pytest.mark.parametrize("said", HOSTILE)
def test_why_a_model_was_stopped_is_no_markdown(said: str) -> None:
    tally = StageProgress("lab/m", "asked", stopped=said, warnings=[f"lab/m: {said}"])

    told = tallied([tally])

    for name in ("models", "warnings"):
        html = rendered(str(getattr(told[name], "value", None)))
        assert not tags(html) & {"img", "a", "script", "h1", "code", "em", "strong", "s", "del"}
        assert in_one_line(said) in unescape(html)


@pytest.mark.parametrize("run", ["123456e7", "00012345", "1_000", "nan"])
def test_a_text_that_looks_like_a_number_stays_a_text(run: str) -> None:
    html = rendered(markdown([{"run": run, "share": 0.5, "none": None, "certain": True}]).value)

    assert parts(html, "td") == [run, "0.500", "", "True"]


def test_what_a_line_lacks_is_0_and_lists_of_names_are_texts_too() -> None:
    html = rendered(markdown([{"a": ["<b>", "x"], "b": 1.5}, {"a": "y"}]).value)

    assert parts(html, "td") == ["['<b>', 'x']", "1.500", "y", "0.000"]


def test_an_empty_list_says_so_and_markdown_stays_markdown() -> None:
    assert listed([]).value == "none"
