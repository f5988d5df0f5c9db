"""Generated code: what comes out of a sandbox, and what of it is kept in a project's folder."""

import re
import shutil
from pathlib import Path

from eval_pipeline.coding.sandbox.sandbox import Finished, SandboxError
from eval_pipeline.coding.writing import write_files

FOLDER = "convex/_generated"
GENERATED = ("api.d.ts", "api.js", "dataModel.d.ts", "server.d.ts", "server.js")
COLLECTED = "generated"
"""The folder in which commands leave generated code, at its paths in the project."""
_KEPT = re.compile(r"convex/(\w+/)*_generated/(api|server|dataModel)\.(d\.ts|js)", re.ASCII)


def keep_generated(finished: Finished, folder: Path) -> None:
    """Writes the code that a command has generated where the project expects it."""
    brought = {path.removeprefix(f"{COLLECTED}/"): text for path, text in finished.files.items()}
    expected = [f"{FOLDER}/{name}" for name in GENERATED]
    if missing := [path for path in expected if path not in brought]:
        raise SandboxError(f"Generated code did not come out of the sandbox: {missing[0]}.")
    kept = {path: text for path, text in brought.items() if _KEPT.fullmatch(path)}
    write_files(folder, {path: text.decode("utf-8", "replace") for path, text in kept.items()})


def take_out_generated(folder: Path) -> None:
    """Removes whatever generated code a project brought along, its components' included."""
    for found in list(folder.glob("convex/**/_generated")):
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink()
