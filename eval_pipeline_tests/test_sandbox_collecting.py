"""Archives out of a sandbox, which may have been written by whoever was in it."""

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.suites.coding.sandbox.supervise import LARGEST_FILE, MOST_FILES, named, unpack


def entry(name: str, content: bytes = b"x", kind: bytes = tarfile.REGTYPE) -> tuple[object, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/passwd"
    info.size = len(content) if kind == tarfile.REGTYPE else 0
    return info, content


def archive(*entries: tuple[object, bytes]) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for info, content in entries:
            assert isinstance(info, tarfile.TarInfo)
            tar.addfile(info, io.BytesIO(content) if info.size else None)
    return written.getvalue()


def test_regular_files_come_out_under_the_paths_that_were_asked_for() -> None:
    packed = archive(entry("./out/a", b"1"), entry("out/deep/b", b"2"), entry("outer/c"))

    files = unpack(packed, ["out"])

    assert files == {"out/a": b"1", "out/deep/b": b"2"}


@pytest.mark.parametrize(
    "forged",
    [
        entry("../out/a"),
        entry("out/../../a"),
        entry("/out/a"),
        entry("/etc/passwd"),
        entry("elsewhere"),
        entry("out/new\nline"),
        entry("out/\x1b[2J"),
        *(
            entry("out/a", kind=kind)
            for kind in (
                *(tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE),
                *(tarfile.BLKTYPE, tarfile.DIRTYPE, tarfile.CONTTYPE),
            )
        ),
    ],
)
def test_what_was_forged_stays_out(forged: tuple[object, bytes]) -> None:
    packed = archive(forged, entry("out/honest"))

    files = unpack(packed, ["out"])

    assert list(files) == ["out/honest"]


def test_what_is_too_large_or_too_many_stays_out() -> None:
    large = archive(entry("large", b"x" * (LARGEST_FILE + 1)), entry("small"))
    many = archive(*(entry(f"many/{number}") for number in range(MOST_FILES + 5)))

    found_large = unpack(large, ["large", "small"])
    found_many = unpack(many, ["many"])

    assert list(found_large) == ["small"]
    assert len(found_many) == MOST_FILES


def test_an_archive_that_was_cut_off_gives_what_is_whole() -> None:
    packed = archive(entry("a", b"1"), entry("b", b"2" * 2000))

    files = unpack(packed[:2000], ["a", "b"])

    assert files == {"a": b"1"}


@given(st.binary(max_size=2000))
def test_no_archive_breaks_anything(packed: bytes) -> None:
    files = unpack(packed, ["a"])

    assert all(isinstance(content, bytes) for content in files.values())


def test_wildcards_in_names_are_only_letters() -> None:
    spelled = named(["a*b", "c[1]?", "d\\e"])

    assert spelled == ["./a\\*b", "./c\\[1]\\?", "./d\\\\e"]
