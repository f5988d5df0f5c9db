"""Showing how far a launch is: bars at a terminal, plain lines anywhere else."""

from eval_pipeline.cli.progress.following import following

__all__ = ["following"]
