"""The entry point of `evals`."""

from eval_pipeline.cli.interrupts import INTERRUPTED, exit_interrupted, interrupt_ends_at_once


def main() -> None:
    """Load the command and run it; while it only loads and reads, Ctrl-C ends it at once."""
    interrupt_ends_at_once()
    try:
        from eval_pipeline.cli.main import main as run_command

        run_command()
    except KeyboardInterrupt:
        exit_interrupted()
    except SystemExit as ending:
        if ending.code == INTERRUPTED:
            exit_interrupted()
        raise
