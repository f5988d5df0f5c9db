"""The journal of a deployment, and who may write to it."""

from eval_pipeline.journal import Journal
from eval_pipeline.journal.tokens import Tokens, TokenScope
from eval_pipeline.settings.settings import TOKEN, Settings


def open_journal(settings: Settings) -> Journal:
    """Return the journal of the settings; in production most processes can only read it."""
    return Journal(settings.journal, read_only=not may_write(settings))


def refuse_production(settings: Settings) -> None:
    """Raise before a command that writes does anything, if it may not write."""
    open_journal(settings).refuse_if_read_only()


def may_write(settings: Settings) -> bool:
    """Return whether to allow writes: in production by flag and token, or by CI on its branch."""
    production = settings.production
    if production is None or settings.branch == production.branch:
        return True
    secret = settings.key(TOKEN)
    if not settings.means_production or secret is None:
        return False
    token = Tokens(settings.tokens).check(secret.get_secret_value())
    return token is not None and TokenScope.PRODUCTION in token.scopes
