"""Which journal the settings mean, and who may write to it: production is nobody's by accident."""

from eval_pipeline.journal import Journal
from eval_pipeline.remote.tokens import Tokens, TokenScope
from eval_pipeline.settings import TOKEN, Settings


def journal_of(settings: Settings) -> Journal:
    """The journal as commands and Dagster have it; in production most can only read it."""
    return Journal(settings.journal, read_only=not may_write(settings))


def refuse_production(settings: Settings) -> None:
    """For commands that write: nothing at all is to be done before they are refused."""
    journal_of(settings).refuse_if_read_only()


def may_write(settings: Settings) -> bool:
    """In production only who says so and has a token for it, and CI on its branch."""
    production = settings.production
    if production is None or settings.branch == production.branch:
        return True
    secret = settings.key(TOKEN)
    if not settings.means_production or secret is None:
        return False
    token = Tokens(settings.tokens).check(secret.get_secret_value())
    return token is not None and TokenScope.PRODUCTION in token.scopes
