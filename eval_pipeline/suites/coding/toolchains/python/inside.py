"""Runs mypy or ruff where an answer is, after a look for comments that would silence it."""

import os
import re
import runpy
import sys
import tempfile
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

SILENCED = 3
"""How it ends if there are such comments."""
TYPES = re.compile(r"#\s*(type:\s*ignore|mypy:|pyright:)", re.IGNORECASE)
STYLE = re.compile(r"#\s*(noqa|ruff:|flake8[:=]|isort:|pylint:)", re.IGNORECASE)


def silencers(path: str, silencer: re.Pattern[str]) -> Iterator[str]:
    """Every place of a file where a tool is told to look away."""
    try:
        with Path(path).open("rb") as file:
            for token in tokenize.tokenize(file.readline):
                comment = token.type == tokenize.COMMENT and silencer.search(token.string)
                unchecked = token.type == tokenize.NAME and token.string == "no_type_check"
                if comment or (unchecked and silencer is TYPES):
                    yield f"{path}:{token.start[0]}: {token.string.strip()}"
    except (tokenize.TokenError, SyntaxError, UnicodeDecodeError, ValueError):
        return  # which the tool itself will say


def refuse_silencers(paths: list[str], silencer: re.Pattern[str]) -> None:
    """Ends here if a tool is told to look away anywhere."""
    if found := [place for path in paths for place in silencers(path, silencer)]:
        print("Comments that silence a check are not accepted:", *found, sep="\n")
        sys.exit(SILENCED)


def check_types(paths: list[str], config: str, known: str) -> None:
    """With what mypy knows of the libraries, which can be read and not written."""
    refuse_silencers(paths, TYPES)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    cache = Path(tempfile.mkdtemp())
    (cache / version).symlink_to(Path(known) / version)
    options = ["--config-file", config, "--no-sqlite-cache", "--cache-dir", str(cache)]
    sys.argv = ["mypy", *options, "--", *paths]
    runpy.run_module("mypy", run_name="__main__")


def check_style(paths: list[str], ruff: str) -> None:
    """With our own rules and nobody else's."""
    refuse_silencers(paths, STYLE)
    rules = ["--isolated", "--no-cache", "--ignore-noqa", "--select", "E,F,W,B,I,UP,SIM"]
    options = ["--line-length", "100", "--target-version", "py311", "--output-format", "concise"]
    os.execv(ruff, [ruff, "check", *rules, *options, "--", *paths])  # noqa: S606


def main(tool: str, *words: str) -> None:
    """What the tool needs to know, then `--`, then the files."""
    end = words.index("--")
    check: Callable[..., None] = check_types if tool == "mypy" else check_style
    check(list(words[end + 1 :]), *words[:end])


if __name__ == "__main__":
    main(*sys.argv[1:])
