"""What models wrote, as HTML: what they meant where it is harmless, and text where it is not."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.web.markup import as_text, code, difference, formula, markdown
from eval_pipeline_tests.viewed import attack

TAG = re.compile(r"<[^>]*>")
PIECES = ["<script>", "<img src=x onerror=a()>", "[a](javascript:b())", "![c](http://d)", "$", "$$"]
PIECES += [
    "\\(",
    "\\[",
    "```",
    "`",
    "\\href{javascript:e()}{f}",
    "&lt;",
    "<!--",
    "\n\n",
    "| a |",
    "> ",
]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("**bold** and _soft_", "<p><strong>bold</strong> and <em>soft</em></p>"),
        ("a\nb", "<p>a<br />\nb</p>"),
        ("<b>no</b>", "<p>&lt;b&gt;no&lt;/b&gt;</p>"),
        ("[x](javascript:a)", "<p>[x](javascript:a)</p>"),
        ("costs $5 and $6", "<p>costs $5 and $6</p>"),
        ("", ""),
    ],
)
def test_markdown_is_rendered_and_html_is_text(written: str, shown: str) -> None:
    assert markdown(written).strip() == shown


def test_links_lead_out_without_telling_from_where() -> None:
    shown = markdown("[x](https://example.org/a?b=1&c=2) [y](data:text/html,z) [z](//e.org)")

    assert shown.count("<a href=") == 1
    assert (
        'href="https://example.org/a?b=1&amp;c=2" rel="noopener noreferrer nofollow ugc"' in shown
    )


@pytest.mark.parametrize(
    "written", ["$x^2$", "\\(x^2\\)", "$$x^2$$", "\\[x^2\\]", "so $$\nx^2\n$$ it is"]
)
def test_formulas_are_mathml_however_they_are_written(written: str) -> None:
    shown = markdown(written)

    assert "<math" in shown and "<msup>" in shown and "x^2" not in shown


@pytest.mark.parametrize(
    "tex", ["\\href{javascript:a()}{b}", "\\unknown{", "\\def\\a{\\a\\a}\\a", "x" * 3000, "{" * 500]
)
def test_what_is_no_formula_is_shown_as_it_was_written(tex: str) -> None:
    shown = str(formula(tex, block=False))

    assert "href" not in "".join(TAG.findall(shown))
    assert shown.startswith(("<code", "<math"))


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=12).map("".join))
@settings(max_examples=150, deadline=None)
def test_nothing_that_is_written_becomes_a_tag_or_address_of_its_own(written: str) -> None:
    for shown in (markdown(written), as_text(written), code(written, "a.py")):
        tags = "".join(TAG.findall(str(shown)))
        assert not re.search(r"<(script|img|iframe|style|svg)|\son\w+=|javascript:", tags)


@pytest.mark.parametrize(
    "text",
    [
        *("$" * 50_000, "\\(" * 25_000, "[" * 50_000, "*a " * 20_000, "> " * 25_000, "`" * 50_000),
        *("$a$ " * 12_000, "| a " * 12_000 + "\n" + "|-" * 12_000, "- " * 25_000, "<" * 50_000),
        *("```\n" * 12_000, "\\[" + "{" * 50_000, "a_" * 25_000, "![" * 25_000),
    ],
)
def test_every_text_is_done_before_the_test_is_given_up(text: str) -> None:
    # Each takes a fraction of a second; with time that grows as the square it would be hours.
    assert markdown(text)


@pytest.mark.parametrize(
    ("path", "token"),
    [
        ("a.py", 'class="k"'),
        ("a.ts", 'class="kd"'),
        ("a.json", 'class="nt"'),
        ("a.unknown", "<pre>"),
    ],
)
def test_code_is_in_the_colours_of_its_language(path: str, token: str) -> None:
    text = {"json": '{"a": 1}', "ts": "const a = 1"}.get(path.partition(".")[2], "def a(): pass")

    assert token in code(text, path)


def test_a_difference_has_the_lines_around_it() -> None:
    shown = difference("a.py", "a\nb\nc\n", f"a\n{attack('diff')}\nc\n")

    assert shown is not None
    text = TAG.sub("", str(shown))
    assert "-b" in text and "+diff&lt;/pre&gt;" in text
    assert difference("a.py", "a\n", "a\n") is None
    assert difference("a.py", "a\n" * 3000, "b\n") is None


def test_signs_that_nobody_sees_are_shown() -> None:
    assert "\ufffd" in as_text("a\x1b[31m\u202eb")
