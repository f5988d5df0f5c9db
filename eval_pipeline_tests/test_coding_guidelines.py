"""Guidelines are read in sections, each for one toolchain or for all."""

from pathlib import Path

import pytest

from eval_pipeline.suites.coding.guidelines import Guidelines, GuidelinesError, Section
from eval_pipeline.suites.coding.toolchains.registry import TOOLCHAINS

BOTH = """# all

## Manners

Be brief.

# python

Read this first.

## Types

Annotate.

```python
# all
## not a heading
```

## Errors

Raise.

# Convex

## Types

Validate.
"""


def names(guidelines: Guidelines, toolchain: str) -> list[str]:
    return [section.name for section in guidelines.sections(toolchain)]


def test_a_toolchain_has_its_own_sections_and_those_for_all() -> None:
    guidelines = Guidelines.parse(BOTH)

    assert names(guidelines, "python") == ["Manners", "python", "Types", "Errors"]
    assert names(guidelines, "convex") == ["Manners", "Types"]
    assert names(guidelines, "another") == ["Manners"]


def test_the_text_is_that_of_the_sections_with_their_headings() -> None:
    text = Guidelines.parse(BOTH).text("convex")

    assert text == "## Manners\n\nBe brief.\n\n## Types\n\nValidate."


def test_headings_in_code_are_none() -> None:
    (types,) = [one for one in Guidelines.parse(BOTH).sections("python") if one.name == "Types"]

    assert types.text.endswith("```python\n# all\n## not a heading\n```")


def test_a_section_knows_about_how_many_tokens_it_has() -> None:
    guidelines = Guidelines.parse("## A\n\n12345")

    assert guidelines.sections("python") == (Section("A", "## A\n\n12345", 3),)


def test_a_section_can_be_left_out() -> None:
    guidelines = Guidelines.parse(BOTH)

    rest = guidelines.without("Types")

    assert names(rest, "python") == ["Manners", "python", "Errors"]
    assert names(rest, "convex") == ["Manners"]
    assert names(guidelines, "convex") == ["Manners", "Types"]


def test_a_section_that_is_not_there_can_not_be_left_out() -> None:
    with pytest.raises(GuidelinesError) as refused:
        Guidelines.parse(BOTH).without("Typing")

    assert str(refused.value) == (
        "There is no section 'Typing'; there are: Manners, python, Types, Errors."
    )


@pytest.mark.parametrize("title", ["# House rules\n\n", "", "Plain words.\n\n"])
def test_a_file_that_names_no_toolchain_holds_for_all(title: str) -> None:
    guidelines = Guidelines.parse(f"{title}## One\n\nText.\n\n# Another title\n\n## Two\n\nText.\n")

    assert guidelines.text("python") == guidelines.text("convex")
    assert names(guidelines, "python")[-2:] == ["One", "Two"]
    assert title.strip() in guidelines.text("python")


def test_a_title_may_stand_before_the_toolchains() -> None:
    guidelines = Guidelines.parse(
        "# House rules\n\nBe kind.\n\n# python\n\n## Types\n\nAnnotate.\n"
    )

    assert guidelines.text("convex") == "# House rules\n\nBe kind."


def test_a_toolchain_that_does_not_exist_is_refused() -> None:
    with pytest.raises(GuidelinesError, match="'# pyhton' is no toolchain; there are all, "):
        Guidelines.parse("# python\n\n## A\n\nText.\n\n# pyhton\n\n## B\n\nText.\n")


def test_two_sections_of_one_name_are_refused() -> None:
    with pytest.raises(GuidelinesError, match="two sections for python are named 'A'"):
        Guidelines.parse("# all\n\n## A\n\nText.\n\n# python\n\n## A\n\nText.\n")


def test_an_empty_file_says_nothing() -> None:
    guidelines = Guidelines.parse(" \n")

    assert (guidelines.text("python"), guidelines.sections("python")) == ("", ())


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "guidelines.md").write_text(BOTH, "utf-8")

    assert Guidelines.read(tmp_path / "guidelines.md") == Guidelines.parse(BOTH)


def test_a_file_that_can_not_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "bytes.md").write_bytes(b"\xff")

    for name, reason in (("none.md", "No such file or directory"), ("bytes.md", "not valid UTF-8")):
        with pytest.raises(GuidelinesError, match=f"{name}: .*{reason}"):
            Guidelines.read(tmp_path / name)


@pytest.mark.parametrize("toolchain", sorted(TOOLCHAINS))
def test_the_projects_own_guidelines_speak_of_every_toolchain(toolchain: str) -> None:
    root = Path(__file__).parent.parent

    sections = Guidelines.read(root / "evals" / "guidelines.md").sections(toolchain)

    assert 6 <= len(sections) <= 9
    assert all(50 < section.tokens < 500 for section in sections)
