"""`evals doctor`: is everything there that an evaluation needs, and if not, what to do."""

from eval_pipeline.cli.output import AsJson


def doctor(*, as_json: AsJson = False) -> None:
    """Check keys, gateways, sandbox, toolchains, disk, locks and versions."""
    raise NotImplementedError
