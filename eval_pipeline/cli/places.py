"""Where commands find the results."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # these take a moment to load that `evals --help` does without
    from eval_pipeline.settings import Settings
    from eval_pipeline.warehouse import Warehouse


def open_warehouse(settings: "Settings | None" = None) -> "Warehouse":
    """The results of the project in the current folder."""
    from eval_pipeline.journal import Journal
    from eval_pipeline.settings import Settings
    from eval_pipeline.warehouse import Warehouse

    settings = settings or Settings.from_env()
    return Warehouse(settings.database, Journal(settings.journal))
