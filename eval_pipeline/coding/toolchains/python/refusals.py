"""Files that an answer must not bring: they would configure, replace or evade what checks it."""

import sys
from pathlib import PurePosixPath

_CONFIGURATION = frozenset(
    {
        "conftest.py",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "tox.ini",
        "setup.cfg",
        "setup.py",
        "mypy.ini",
        ".mypy.ini",
        "ruff.toml",
        ".ruff.toml",
        "sitecustomize.py",
        "usercustomize.py",
        "pyvenv.cfg",
        ".coveragerc",
    }
)
_NOT_SOURCE = (".pth", ".so", ".pyd", ".dylib", ".dll", ".pyc", ".pyo", ".whl", ".egg", ".egg-link")
_FOLDERS = frozenset({"__pycache__", ".git", ".venv", "site-packages"})
# What checks answers, and what they build on: a module of that name would be taken instead.
_TAKEN = sys.stdlib_module_names | frozenset(
    {
        "pytest",
        "_pytest",
        "pluggy",
        "iniconfig",
        "packaging",
        "pygments",
        "py",
        "mypy",
        "mypyc",
        "mypy_extensions",
        "ruff",
        "typing_extensions",
        "librt",
        "exceptiongroup",
        "tomli",
        "duckdb",
        "_duckdb",
        "pandas",
        "numpy",
        "httpx",
        "httpcore",
        "h11",
        "anyio",
        "pydantic",
        "pydantic_core",
        "dagster",
        "dagster_shared",
        "dagster_pipes",
        "eval_pipeline",
    }
)


def refusal(path: str) -> str | None:
    """Why an answer must not bring a file with this path."""
    parts = PurePosixPath(path).parts
    name, top = parts[-1].casefold(), parts[0].partition(".")[0]
    if name in _CONFIGURATION:
        return "An answer must not configure its own checks."
    if name.endswith(".pyi"):
        return "A stub would be checked instead of the module itself."
    if name.endswith(_NOT_SOURCE):
        return "Only source code is graded."
    if any(part.casefold() in _FOLDERS or part.endswith("-info") for part in parts):
        return "This folder is not the answer's to bring."
    if top in _TAKEN and (len(parts) > 1 or name.endswith(".py")):
        return f"It would take the place of the module {top}."
    return None
