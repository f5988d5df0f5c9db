"""The scores of convex-evals' backend as runs, predictions and verdicts of ours."""
