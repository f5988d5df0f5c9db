"""No character of any occurrence is left, and nothing else is touched."""

import pytest
from redact import redact

M = "[redacted]"


def test_every_occurrence_is_masked() -> None:
    assert redact("key=s3cret, again s3cret.", ["s3cret"]) == f"key={M}, again {M}."
    assert redact("s3cret", ["s3cret"]) == M


@pytest.mark.parametrize("secrets", [[], ["other"], ["S3CRET"], ["s3cret "]])
def test_text_without_secrets_is_left_alone(secrets: list[str]) -> None:
    assert redact("key=s3cret", secrets) == "key=s3cret"
    assert redact("", secrets) == ""


@pytest.mark.parametrize("blank", ["", " ", "\n", "\t \n"])
def test_blank_secrets_are_ignored(blank: str) -> None:
    assert redact("a b\n\t \nc", [blank]) == "a b\n\t \nc"
    assert redact("a b", [blank, "b"]) == f"a {M}"


def test_whitespace_around_a_secret_is_part_of_it() -> None:
    assert redact("a key b  key ", [" key "]) == f"a{M}b {M}"


@pytest.mark.parametrize("secrets", [["abc", "abcdef"], ["abcdef", "abc"], ["cde", "abcdef", "f"]])
def test_a_secret_within_another_leaves_no_rest(secrets: list[str]) -> None:
    assert redact("xabcdefx", secrets) == f"x{M}x"


def test_each_of_two_nested_secrets_is_found_alone_too() -> None:
    assert redact("abc abcdef", ["abcdef", "abc"]) == f"{M} {M}"


@pytest.mark.parametrize("secrets", [["abcd", "cdef"], ["cdef", "abcd"]])
def test_different_secrets_that_overlap_are_one_run(secrets: list[str]) -> None:
    assert redact("xabcdefx", secrets) == f"x{M}x"


@pytest.mark.parametrize(
    ("text", "secret", "expected"),
    [
        ("xabcabcax", "abca", f"x{M}x"),
        ("aaa", "aa", M),
        ("xaaaaax aa", "aaa", f"x{M}x aa"),
        ("-ababa-aba", "aba", f"-{M}-{M}"),
    ],
)
def test_a_secret_that_overlaps_itself_is_one_run(text: str, secret: str, expected: str) -> None:
    assert redact(text, [secret]) == expected


def test_occurrences_that_touch_are_one_run() -> None:
    assert redact("<onetwoone>", ["one", "two"]) == f"<{M}>"
    assert redact("one two", ["one", "two"]) == f"{M} {M}"


@pytest.mark.parametrize(
    "secret", ["a.c", "a+", "(", "[x]", "\\d", "^a$", "a|b", "\\1", "{0}", "%s"]
)
def test_secrets_are_not_patterns(secret: str) -> None:
    assert redact(f"abc {secret}\u2603 dd", [secret]) == f"abc {M}\u2603 dd"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (r"<say \"hi\">", 'say "hi"'),
        (r"<C:\\key>", "C:\\key"),
        (r"<one\ntwo>", "one\ntwo"),
        (r"<na\u00efve>", "naïve"),
        (r"<\ud83c\udf88>", "🎈"),
        ("<a%2Fb%20c%26>", "a/b c&"),
        ("<na%C3%AFve>", "naïve"),
        ("<100%25>", "100%"),
        ("<na\u00efve>", "naïve"),
    ],
)
def test_all_three_spellings_are_found(text: str, secret: str) -> None:
    assert redact(text, [secret]) == f"<{M}>"


def test_spellings_of_different_secrets_may_overlap() -> None:
    assert redact("<a%2Fbc>", ["a/b", "bc"]) == f"<{M}>"
    assert redact("<a%2Fb>", ["2F"]) == f"<a%{M}b>"


@pytest.mark.parametrize("secret", ["red", "[", "]", "redacted", "[redacted]", "ed"])
def test_masks_are_not_searched(secret: str) -> None:
    assert redact(f"key {secret} key", ["key", secret]) == f"{M} {M} {M}"


def test_what_a_replacement_brings_together_is_not_searched() -> None:
    assert redact("ab-key-cd", ["-key-", f"b{M}c", "bc"]) == f"ab{M}cd"


def test_secrets_at_both_ends_and_given_twice() -> None:
    assert redact("key and key", ["key", "key"]) == f"{M} and {M}"
