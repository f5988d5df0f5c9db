"""Paths of pages: every name has one that means it and leads nowhere else."""

import re
from hashlib import md5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.interop.remote.messages import (
    BadPathError,
    decode_segment,
    encode_segment,
    parse_hashed,
)
from eval_pipeline.web.routes import Links

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=400)


@given(NAMES)
def test_every_name_is_one_harmless_part_of_a_path(name: str) -> None:
    part = encode_segment(name)

    assert re.fullmatch(r"[A-Za-z0-9_=-][A-Za-z0-9_.=-]{0,220}", part)
    assert decode_segment(part) == name or parse_hashed(part) == md5(name.encode()).hexdigest()


@given(NAMES, NAMES)
def test_no_two_names_have_the_same_path(one: str, other: str) -> None:
    assert (encode_segment(one) == encode_segment(other)) == (one == other)


@given(st.text(max_size=60))
def test_a_part_that_nothing_is_spelled_like_means_nothing(part: str) -> None:
    try:
        name = decode_segment(part)
    except BadPathError:
        return
    assert parse_hashed(part) is not None or encode_segment(name) == part


@pytest.mark.parametrize(
    "part", ["", ".", "..", "a/b", "=41", "=2f", "=", "=C3", "é", "a b", "%41"]
)
def test_other_spellings_are_refused(part: str) -> None:
    with pytest.raises(BadPathError):
        decode_segment(part)


@pytest.mark.parametrize(
    ("at", "target", "served", "static"),
    [
        ("", "", "./", "./index.html"),
        ("", "models/a/", "./models/a/", "./models/a/index.html"),
        ("runs/x/m/", "", "../../../", "../../../index.html"),
        ("runs/x/m/", "runs/x/m/item/s/i/", "item/s/i/", "item/s/i/index.html"),
        ("runs/x/m/", "runs/x/m/", "./", "./index.html"),
        ("login", "static/style.css", "./static/style.css", "./static/style.css"),
    ],
)
def test_links_are_relative_so_that_pages_can_stand_anywhere(
    at: str, target: str, served: str, static: str
) -> None:
    assert Links(at).to(target) == served
    assert Links(at, static=True).to(target) == static


def test_what_is_asked_is_quoted() -> None:
    assert Links("").to("compare/", m=["a&b", "c"], x=None) == "./compare/?m=a%26b&m=c"
