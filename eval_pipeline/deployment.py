"""Which journal the settings mean: that of production is written to over the API alone."""

from eval_pipeline.journal import Journal
from eval_pipeline.settings import Settings


def journal_of(settings: Settings) -> Journal:
    """The journal as commands and Dagster have it; in production they can only read it."""
    return Journal(settings.journal, read_only=settings.deployment.production)


def refuse_production(settings: Settings) -> None:
    """For commands that write: nothing at all is to be done before they are refused."""
    journal_of(settings).refuse_if_read_only()
