"""Files are found in a reply however they are written, and quickly whatever else is in it."""

import json
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.gateways.demo.coder import as_reply
from eval_pipeline.suites.coding.files import UnsafePath, check_files
from eval_pipeline.suites.coding.reply import UnreadableReply, read_files

CODE = "x = 1\n"
FENCED = f"```python\n{CODE}```\n"

names = st.from_regex(
    r"[a-zA-Z_][a-zA-Z0-9_-]{0,8}(\.test)?\.(py|ts|md|toml|json|txt)", fullmatch=True
)
paths = st.one_of(
    names, st.tuples(st.from_regex(r"[a-z_]{1,6}", fullmatch=True), names).map("/".join)
)
lines = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=30),
    st.sampled_from(
        [
            "```",
            "````python",
            "~~~",
            "   ```",
            "# Files",
            "## a.py",
            "</file>",
            '<file path="b.py">',
        ]
    ),
    st.sampled_from(["<think>", "</think>", "**c.py**", "# d.py", "    indented", ""]),
)
contents = st.lists(lines, max_size=8).map(lambda parts: "".join(f"{part}\n" for part in parts))


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(paths, contents, min_size=1, max_size=4))
def test_what_is_written_in_the_asked_form_is_read_back(files: dict[str, str]) -> None:
    assert read_files(as_reply(files)) == files


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(paths, contents, min_size=1, max_size=3))
def test_what_is_written_as_json_is_read_back(files: dict[str, str]) -> None:
    listed = [{"path": path, "content": text} for path, text in files.items()]

    assert read_files(json.dumps({"files": files})) == files
    assert read_files(json.dumps({"files": listed})) == files
    assert read_files(f"Here:\n\n```json\n{json.dumps(listed)}\n```\n") == files


@settings(max_examples=100, deadline=None)
@given(st.lists(lines, max_size=20).map("\n".join))
def test_any_text_is_read_or_said_to_be_unreadable(reply: str) -> None:
    try:
        files = read_files(reply)
    except UnreadableReply as unreadable:
        assert str(unreadable).endswith(".")
    else:
        assert files


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_the_asked_form_is_read_with_either_line_ending(ending: str) -> None:
    reply = (
        "# Files\n\n## pkg/a.py\n\n```python\nx = 1\n\ny = 2\n```\n\n## b.toml\n\n```toml\n```\n"
    )

    files = read_files(reply.replace("\n", ending))

    assert files == {"pkg/a.py": "x = 1\n\ny = 2\n", "b.toml": ""}


@pytest.mark.parametrize(
    "heading",
    [
        "# solution.py",
        "## solution.py",
        "###### solution.py",
        "##solution.py",
        "## solution.py ##",
        "## solution.py:",
        "## `solution.py`",
        "## **solution.py**",
        "## **`solution.py`**",
        "## 1. solution.py",
        "## 2) `solution.py`",
        "## File: solution.py",
        "## File 1: `solution.py`",
        "## Filename: solution.py",
        "## solution.py (new)",
        "## `solution.py` - the solution",
        "## ./solution.py",
        "## solution.py\n\nIt has one function.",
        "## solution.py\n\n### The code",
        "## solution.py\n\n**Note:** it is short.",
        "## solution.py\n",
        "**solution.py**",
        "**solution.py**\n\nThis is it:",
        "**solution.py:**",
        "**File: `solution.py`**",
        "`solution.py`",
        "`solution.py`:",
        "- `solution.py`",
        "1. **solution.py**",
        "File: solution.py",
        "file path: solution.py",
        "Path: `solution.py`",
        "solution.py",
        "solution.py:",
        "Here is the content of `solution.py`:",
        "**Put this into `solution.py`:**",
    ],
)
def test_a_path_before_a_block_names_it(heading: str) -> None:
    assert read_files(f"Sure!\n\n{heading}\n{FENCED}\nThat is all.") == {"solution.py": CODE}


@pytest.mark.parametrize(
    "path",
    [
        "__init__.py",
        "pkg/__init__.py",
        "convex/http.ts",
        "a/b.test.ts",
        ".env",
        "Makefile",
        "_x.py",
    ],
)
@pytest.mark.parametrize("heading", ["## {}", "**{}**", "## `{}`", "File: {}"])
def test_paths_of_all_kinds_are_known_as_such(path: str, heading: str) -> None:
    assert read_files(f"{heading.format(path)}\n{FENCED}") == {path: CODE}


@pytest.mark.parametrize(
    "info",
    [
        'python title="solution.py"',
        "python title='solution.py'",
        "python path=solution.py",
        'python filename="solution.py" linenums="1"',
        '{.python filename="solution.py"}',
        "python:solution.py",
        "py:./solution.py",
        "solution.py",
        "python solution.py",
        "python (solution.py)",
        " python   title=solution.py",
    ],
)
def test_a_path_behind_the_fence_names_the_block(info: str) -> None:
    assert read_files(f"Here you are.\n\n```{info}\n{CODE}```\n") == {"solution.py": CODE}


@pytest.mark.parametrize(
    ("first", "path"),
    [
        ("# solution.py", "solution.py"),
        ("# File: solution.py", "solution.py"),
        ("#solution.py", "solution.py"),
        ("// convex/notes.ts", "convex/notes.ts"),
        ("/* convex/notes.ts */", "convex/notes.ts"),
        ("<!-- index.html -->", "index.html"),
        ("-- schema.sql", "schema.sql"),
        ("# ./pkg/a.py", "pkg/a.py"),
    ],
)
def test_a_comment_at_the_beginning_names_the_block(first: str, path: str) -> None:
    assert read_files(f"```\n{first}\n{CODE}```") == {path: f"{first}\n{CODE}"}


@pytest.mark.parametrize(
    "first",
    [
        "#!/usr/bin/env python3",
        "# Adds 1.5 and 2.",
        "# https://example.org/a.py",
        "import a.py",
        "#",
    ],
)
def test_an_ordinary_first_line_names_nothing(first: str) -> None:
    with pytest.raises(UnreadableReply, match="does not say which file"):
        read_files(f"```\n{first}\n{CODE}```")


def test_text_glued_to_the_heading_does_no_harm() -> None:
    reply = f"I will write one file.# Files\n\n## a.py\n\n{FENCED}"

    assert read_files(reply) == {"a.py": CODE}


def test_drafts_before_the_heading_of_the_files_do_not_count() -> None:
    reply = f"## draft.py\n\n{FENCED}\nNow properly:\n\n# Files\n\n## a.py\n\n```\ny = 2\n```\n"

    assert read_files(reply) == {"a.py": "y = 2\n"}


def test_a_heading_of_the_files_behind_all_of_them_takes_nothing_away() -> None:
    reply = f"## a.py\n\n{FENCED}\n# Files\n\nOnly a.py is needed.\n"

    assert read_files(reply) == {"a.py": CODE}


def test_only_the_first_block_under_a_heading_is_the_file() -> None:
    reply = (
        f"## a.py\n\n{FENCED}\nRun it:\n\n```bash\npython a.py\n```\n\n## Notes\n\n```\nnone\n```\n"
    )

    assert read_files(reply) == {"a.py": CODE}


def test_a_path_without_a_block_names_nothing_further_down() -> None:
    reply = f"## a.py\n\n{FENCED}\n## b.py\n\nNot needed.\n\n## Usage\n\n```\npython a.py\n```\n"

    assert read_files(reply) == {"a.py": CODE}


def test_an_example_that_begins_with_a_path_is_no_file_beside_named_ones() -> None:
    reply = f"## a.py\n\n{FENCED}\nFor example:\n\n```python\n# try_it.py\nimport a\n```\n"

    assert read_files(reply) == {"a.py": CODE}
    assert read_files(reply, ("a.py", "try_it.py")).keys() == {"a.py", "try_it.py"}


def test_of_a_file_that_comes_twice_the_last_one_counts() -> None:
    reply = f"## a.py\n\n{FENCED}\nA mistake, again:\n\n## `./a.py`\n\n```\ny = 2\n```\n"

    assert read_files(reply) == {"a.py": "y = 2\n"}


def test_a_longer_fence_holds_shorter_ones() -> None:
    inner = "# Title\n\n```bash\nls\n```\n\n~~~\nx\n~~~\n"
    reply = f"## README.md\n\n````markdown\n{inner}````\n\n## a.py\n\n~~~~python\n{CODE}~~~~\n"

    assert read_files(reply) == {"README.md": inner, "a.py": CODE}


def test_a_markdown_file_in_a_fence_that_is_too_short_is_still_whole() -> None:
    inner = "# Title\n\n```bash\nls\n```\n\nThe end.\n"
    reply = f"## README.md\n\n```markdown\n{inner}```\n\n## a.py\n\n{FENCED}"

    assert read_files(reply) == {"README.md": inner, "a.py": CODE}


def test_a_fence_within_a_docstring_does_not_end_the_file() -> None:
    code = 'def f() -> None:\n    """Example:\n\n    ```\n    f()\n    ```\n    """\n'

    assert read_files(f"## a.py\n\n```python\n{code}```\n") == {"a.py": code}


def test_an_indented_block_loses_its_indentation() -> None:
    reply = "1. `a.py`\n\n   ```python\n   if x:\n       y = 1\n\n   ```\n"

    assert read_files(reply) == {"a.py": "if x:\n    y = 1\n\n"}


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_fence_that_is_never_closed_ends_with_the_reply(end: str) -> None:
    assert read_files(f"## a.py\n\n```python\nx = 1\ny = 2{end}") == {"a.py": "x = 1\ny = 2\n"}


@pytest.mark.parametrize(
    "reply",
    [
        f"<think>\n## a.py\n{FENCED}</think>\n## b.py\n\n{FENCED}",
        f"<thinking>## a.py\n{FENCED}\n</thinking>## b.py\n\n{FENCED}",
        f"<think></think><think>x</think>\n\n## b.py\n\n{FENCED}",
        f"## a.py\n{FENCED}\n</think>\n\n## b.py\n\n{FENCED}",
    ],
)
def test_thoughts_are_no_part_of_the_answer(reply: str) -> None:
    assert read_files(reply) == {"b.py": CODE}


def test_a_reply_of_thoughts_only_is_unreadable() -> None:
    with pytest.raises(UnreadableReply, match="no file"):
        read_files(f"<think>\n## a.py\n{FENCED}")


@pytest.mark.parametrize(
    "reply",
    [
        f'<file path="pkg/a.py">\n{CODE}</file>',
        f"Here:\n<file name='pkg/a.py'>\n```python\n{CODE}```\n</file>\nDone.",
        '<files>\n  <file path="./pkg/a.py">x = 1</file>\n</files>',
        f'<file path="pkg/a.py">\n{CODE}',
    ],
)
def test_tags_are_read_too(reply: str) -> None:
    assert read_files(reply) == {"pkg/a.py": CODE}


@pytest.mark.parametrize(
    "reply",
    ['{"files": {"./a.py": "x = 1\\n"}}', '[{"name": "a.py", "content": "x = 1\\n"}]'],
)
def test_json_is_read_too(reply: str) -> None:
    assert read_files(reply) == {"a.py": CODE}


@pytest.mark.parametrize(
    "reply",
    [
        FENCED,
        f"Here it is:\n\n{FENCED}\nGood luck!",
        f"Run `pip list` first:\n\n```bash\npip list\n```\n\n{FENCED}",
        f"## The solution\n\n{FENCED}",
    ],
)
def test_a_block_without_a_path_is_the_one_file_that_is_expected(reply: str) -> None:
    assert read_files(reply, ("solution.py",)) == {"solution.py": CODE}


@pytest.mark.parametrize("expected", [(), ("a.py", "b.py")])
def test_a_block_without_a_path_is_no_file_otherwise(expected: tuple[str, ...]) -> None:
    for reply in (FENCED, f"# Files\n\n{FENCED}"):
        with pytest.raises(UnreadableReply, match="does not say which file"):
            read_files(reply, expected)


def test_of_several_blocks_without_a_path_none_is_guessed() -> None:
    with pytest.raises(UnreadableReply, match="does not say which file"):
        read_files(f"{FENCED}\n{FENCED}", ("solution.py",))


def test_an_expected_path_is_known_whatever_it_looks_like() -> None:
    reply = f"## bin/run\n\n{FENCED}"

    assert read_files(reply, ("bin/run", "other")) == {"bin/run": CODE}


@pytest.mark.parametrize(
    "reply", ["", "\n\n", "I can not do that.", "## a.py\n\nx = 1\n", "{}", "[1]"]
)
def test_a_reply_without_files_is_unreadable(reply: str) -> None:
    with pytest.raises(UnreadableReply, match="no file"):
        read_files(reply, ("a.py",))


@pytest.mark.parametrize("path", ["../a.py", "/etc/passwd", "a/../../b.py", "..\\a.py", "C:\\a.py"])
def test_a_path_that_leads_away_is_kept_so_that_it_is_refused(path: str) -> None:
    files = read_files(f"## {path}\n\n{FENCED}")

    assert files == {path: CODE}
    with pytest.raises(UnsafePath):
        check_files(files)


@pytest.mark.parametrize(
    "heading",
    ["## Notes on a.py and b.py", "## Version 1.2", "## and/or", "## e.g.", "/think", "## a.b c.d"],
)
def test_what_only_looks_a_little_like_a_path_is_none(heading: str) -> None:
    with pytest.raises(UnreadableReply):
        read_files(f"{heading}\n\n{FENCED}")


@pytest.mark.parametrize(
    "piece",
    [
        "`", "```", "```\n", "````\n```\n", "~~~\n```\n", "#", "# ", "# Files\n", " ",
        "*", "**", "\n", "\r\n", "<think>", "<think></think>", "<think>\n", "</think>\n",
        '<file path="a.py">', '<file path="a.py">\n', "<file ", "</file>", "[", "a.py\n",
        "#" + " " * 50, "# files" + " " * 90, '{"files":', "a/", "../", ". ",
        "## a.md\n```md\n```x\n", "- ", "1. ", "File: ",
        "`a.py` ", "title=", "```python title=a.py\n",
    ],
)  # fmt: skip
def test_hostile_text_is_read_in_a_time_that_grows_with_its_length(piece: str) -> None:
    def seconds(size: int) -> float:
        reply = piece * (size // len(piece))
        started = time.thread_time()
        with suppress(UnreadableReply):
            read_files(reply, ("a.py",))
        return time.thread_time() - started

    # Twenty times the text; what grows with the square would take four hundred times as long.
    # On a busy machine a single measurement may be far too long.
    small = max(seconds(20_000), 0.005)

    assert any(seconds(400_000) < 100 * small for _ in range(5))
