"""Files of a model are written where they belong, and nowhere else whatever they are called."""

import os
from pathlib import Path

import pytest

from eval_pipeline.suites.coding.files import (
    MAX_BYTES,
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_NAME_BYTES,
    MAX_PATH_BYTES,
    UnsafePath,
    check_files,
    write_files,
)


def a_folder(root: Path) -> Path:
    """A folder with something outside of it that must not change."""
    (root / "secret.txt").write_text("secret")
    (root / "answer").mkdir()
    return root / "answer"


def everything(root: Path) -> dict[str, str]:
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return {str(path.relative_to(root)): path.read_text() for path in files}


def test_files_are_written_with_the_folders_they_need(tmp_path: Path) -> None:
    files = {"a.py": "x = 1\n", "pkg/__init__.py": "", "pkg/deep/b.py": "é\r\n", "pkg/c.py": "c"}

    write_files(tmp_path, files)

    written = {path: (tmp_path / path).read_bytes() for path in files}
    assert written == {path: text.encode() for path, text in files.items()}
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == {
        *files
    }


@pytest.mark.parametrize(
    "path",
    [
        "a",
        ".env",
        "..a",
        "a..py",
        "a b.py",
        "ключ.py",
        "con.py",
        "~/a.py",
        "a/...b/c.py",
        "$HOME/a",
    ],
)
def test_a_strange_but_harmless_name_is_taken(tmp_path: Path, path: str) -> None:
    folder = a_folder(tmp_path)

    write_files(folder, {path: "x"})

    assert everything(tmp_path) == {"secret.txt": "secret", f"answer/{path}": "x"}


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/etc/passwd", "is absolute"),
        ("//server/share", "is absolute"),
        ("../secret.txt", "a part that is '..'"),
        ("a/../../secret.txt", "a part that is '..'"),
        ("a/..", "a part that is '..'"),
        ("..", "a part that is '..'"),
        (".", "a part that is '.'"),
        ("a/./b.py", "a part that is '.'"),
        ("./a.py", "a part that is '.'"),
        ("", "is empty"),
        ("a//b.py", "a part that is empty"),
        ("a/", "a part that is empty"),
        ("..\\secret.txt", "a backslash or a colon"),
        ("C:\\a.py", "a backslash or a colon"),
        ("C:a.py", "a backslash or a colon"),
        ("a.py:stream", "a backslash or a colon"),
        ("a\x00.py", "control characters"),
        ("a\n.py", "control characters"),
        ("a\x1b[31m.py", "control characters"),
        ("a\x7f.py", "control characters"),
        ("a\u202egnp.py", "control characters"),
        ("a\u200b.py", "control characters"),
        ("a\u00a0b.py", "control characters"),
        ("a\ud800.py", "control characters"),
        ("a ", "a space or a dot"),
        (" a", "a space or a dot"),
        ("a.", "a space or a dot"),
        ("a. /b.py", "a space or a dot"),
        ("...", "a space or a dot"),
        ("x" * (MAX_NAME_BYTES + 1), "a part that is longer"),
        ("é" * (MAX_NAME_BYTES // 2 + 1), "a part that is longer"),
        ("/".join(["x" * 50] * (MAX_PATH_BYTES // 50 + 1)), "is longer than"),
    ],
)
def test_a_path_that_may_lead_elsewhere_is_refused(tmp_path: Path, path: str, reason: str) -> None:
    folder = a_folder(tmp_path)

    with pytest.raises(UnsafePath) as refused:
        write_files(folder, {"good.py": "x", path: "evil"})

    assert reason in str(refused.value)
    assert str(refused.value).isprintable()
    assert everything(tmp_path) == {"secret.txt": "secret"}


@pytest.mark.parametrize(
    "paths",
    [
        ["a.py", "A.py"],
        ["pkg/a.py", "PKG/a.py"],
        ["straße.py", "STRASSE.py"],
        ["\u00e9.py", "e\u0301.py"],
        ["a", "a/b.py"],
        ["a/b.py", "a"],
        ["A", "a/b.py"],
        ["a/b", "a/b/c/d.py"],
    ],
)
def test_paths_that_can_not_be_together_are_refused(tmp_path: Path, paths: list[str]) -> None:
    files = dict.fromkeys(paths, "x")

    with pytest.raises(UnsafePath, match=r"differ only in case|is a file, and a folder"):
        write_files(tmp_path, files)

    assert everything(tmp_path) == {}


def test_as_many_and_as_large_files_as_are_allowed_are_written(tmp_path: Path) -> None:
    many = {f"{number}.py": "" for number in range(MAX_FILES)}
    large = {f"{number}.txt": "x" * MAX_FILE_BYTES for number in range(MAX_BYTES // MAX_FILE_BYTES)}

    check_files(many)
    write_files(tmp_path, large)

    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == MAX_BYTES


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({f"{number}.py": "" for number in range(MAX_FILES + 1)}, "more than 200"),
        ({"a.py": "x" * (MAX_FILE_BYTES + 1)}, "'a.py' is larger"),
        ({"a.py": "é" * (MAX_FILE_BYTES // 2 + 1)}, "'a.py' is larger"),
        ({f"{n}.py": "x" * MAX_FILE_BYTES for n in range(6)}, "are larger"),
        ({"a.py": "\ud800"}, "not Unicode"),
    ],
)
def test_too_much_is_refused(tmp_path: Path, files: dict[str, str], reason: str) -> None:
    with pytest.raises(UnsafePath, match=reason):
        write_files(tmp_path, files)

    assert everything(tmp_path) == {}


def test_a_link_that_is_there_already_is_not_followed(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    (folder / "out").symlink_to(tmp_path)
    (folder / "file.py").symlink_to(tmp_path / "secret.txt")
    (folder / "dangling.py").symlink_to(tmp_path / "new.txt")

    for path in ("out/secret.txt", "out/new.txt", "file.py", "dangling.py", "out"):
        with pytest.raises(UnsafePath, match="something is already"):
            write_files(folder, {path: "evil"})

    assert everything(tmp_path)["secret.txt"] == "secret"
    assert not (tmp_path / "new.txt").exists()


@pytest.mark.parametrize("path", ["there.py", "there.py/b.py", "pipe"])
def test_what_is_there_is_never_written_over(tmp_path: Path, path: str) -> None:
    (tmp_path / "there.py").write_text("before")
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(UnsafePath, match="something is already"):
        write_files(tmp_path, {path: "after"})

    assert (tmp_path / "there.py").read_text() == "before"


def test_a_folder_that_is_a_link_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    with pytest.raises(OSError, match="link"):
        write_files(tmp_path / "link", {"a.py": "x"})

    assert everything(tmp_path) == {}


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "there.py").write_text("before")
    open_before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    write_files(tmp_path, {"a/b/c.py": "x"})
    with pytest.raises(UnsafePath):
        write_files(tmp_path, {"d/e.py": "x", "there.py": "x"})

    assert len(os.listdir("/proc/self/fd")) == open_before  # noqa: PTH208
