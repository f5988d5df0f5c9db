"""Where `evals` begins: to be interrupted is no fault, also while it is still loading."""

import sys


def main() -> None:
    """Loads the command and runs it."""
    try:
        from eval_pipeline.cli.main import main as begin

        begin()
    except KeyboardInterrupt:
        sys.exit(130)
